// Attention over a cache longer than a few chunks: against doubles, and the same bits however it is cut.

#include <atomic>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "formats/codec/half.h"
#include "runtime/cpu/features.h"
#if defined(__x86_64__)
#include "runtime/ops/attention_tiles-inl.h"
#endif
#include "test/unit/runtime/op_runner.h"

namespace cortiq::runtime {
namespace {

// Sums of f32 products over a thousand positions, against doubles.
constexpr double kError = 2e-6;

struct Form {
  const char* name;
  uint64_t heads, kv_heads, k_dim, v_dim, window;
  KvType type;
  bool quantized;
  std::vector<uint32_t> group_windows = {};
};

const Form kForms[] = {
    {"eight_bits", 6, 2, 64, 64, 0, KvType::kQ8, false},
    {"eight_bits_of_odd_widths", 4, 2, 48, 40, 300, KvType::kQ8, false},
    {"grouped", 6, 2, 64, 64, 0, KvType::kF32, false},
    {"half", 6, 2, 64, 64, 0, KvType::kF16, true},
    {"no_groups", 3, 3, 24, 24, 0, KvType::kF32, false},
    {"one_cache_head_of_many", 16, 1, 48, 32, 0, KvType::kF16, true},
    {"window", 8, 4, 32, 32, 300, KvType::kF32, true},
    {"windows_of_groups", 4, 2, 32, 32, 700, KvType::kF16, false, {100, 700}},
    {"heads_that_share_a_quantization_group", 4, 2, 32, 20, 0, KvType::kF32, true},
};

class Attention : public ::testing::TestWithParam<Form> {
protected:
  static constexpr uint64_t kPositions = 1088, kBatch = 40;

  void SetUp() override {
    const Form& form = GetParam();
    KvShape kv{form.kv_heads, form.k_dim, form.v_dim, form.window};
    runner_.facts().kv_layers = {kv};
    q_ = runner_.slot(form.heads * form.k_dim);
    out_ = runner_.slot(form.heads * form.v_dim);
    act_ = runner_.slot(form.heads * form.v_dim, artifact::BufferKind::Q8Act);
    artifact::AttentionOpT op;
    op.q = q_;
    op.heads = static_cast<uint32_t>(form.heads);
    op.head_dim = static_cast<uint32_t>(form.k_dim);
    op.scale = 0.5f;
    op.out = out_;
    if (form.quantized)
      op.act_out = act_;
    op.group_windows = form.group_windows;
    runner_.stage(std::move(op));
    const Status status = runner_.resolve();
    ASSERT_TRUE(status.ok()) << status.message();
    call_ = runner_.calls()[0].get();
    fill(kv);
  }

  void fill(const KvShape& kv) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, 0.5f);
    const KvType type = GetParam().type;
    keys_.resize(kv.kv_heads * kv.key_bytes(type, kPositions));
    values_.resize(kv.kv_heads * kv.value_bytes(type, kPositions));
    std::uniform_int_distribution<int> code(-127, 127);
    std::uniform_real_distribution<float> factor(0.001f, 0.01f);
    // Value `i` of a row whose values stand `stride` apart behind `base`, in q8 with the factor at `factor_at`.
    auto put = [&](uint8_t* base, uint64_t i, uint64_t stride, uint8_t* factor_at) {
      float value = normal(random);
      if (type == KvType::kF32) {
        std::memcpy(base + i * stride * 4, &value, 4);
      } else if (type == KvType::kF16) {
        const uint16_t half = formats::float_to_half(value);
        std::memcpy(base + i * stride * 2, &half, 2);
        value = formats::half_to_float(half);
      } else {
        if (i % kKvGroup == 0) {
          const float made = factor(random);
          std::memcpy(factor_at, &made, 4);
        }
        const int chosen = code(random);
        reinterpret_cast<int8_t*>(base)[i % kKvGroup * stride] = static_cast<int8_t>(chosen);
        std::memcpy(&value, factor_at, 4);
        value *= static_cast<float>(chosen);
      }
      return value;
    };
    for (uint64_t h = 0; h < kv.kv_heads; ++h)
      for (uint64_t p = 0; p < kPositions; ++p) {
        uint8_t* group = keys_.data() + h * kv.key_bytes(type, kPositions) + p / 16 * kv.key_group_bytes(type);
        const uint64_t lane = p % 16 * (type == KvType::kF32 ? 4 : type == KvType::kF16 ? 2 : 1);
        for (uint64_t i = 0; i < kv.k_dim; ++i) {
          uint8_t* block = group + (type == KvType::kQ8 ? i / kKvGroup * (kKvGroup * 16 + 64) : 0);
          k_.push_back(put(block + lane, i, 16, block + kKvGroup * 16 + p % 16 * 4));
        }
        uint8_t* row = values_.data() + h * kv.value_bytes(type, kPositions) + p * kv.value_row_bytes(type);
        const uint64_t factors = (kv.v_stride() + kKvGroup - 1) / kKvGroup * 4;
        for (uint64_t i = 0; i < kv.v_dim; ++i)
          v_.push_back(type == KvType::kQ8 ? put(row + factors + i / kKvGroup * kKvGroup, i, 1, row + i / kKvGroup * 4)
                                           : put(row, i, 1, nullptr));
      }
    for (uint64_t i = 0; i < kPositions * GetParam().heads * kv.k_dim; ++i)
      all_q_.push_back(normal(random));
  }

  /// Runs `count` tokens from `position` on workers of this many and returns their results, quantized ones behind.
  std::vector<uint8_t> run(uint64_t position, uint64_t count, unsigned threads, bool shared, bool parallel = false) {
    const Form& form = GetParam();
    for (uint64_t t = 0; t < count; ++t)
      std::memcpy(runner_.f32(q_, t), all_q_.data() + (position + t) * form.heads * form.k_dim,
                  form.heads * form.k_dim * sizeof(float));
    StepContext step;
    step.arena = runner_.arena();
    step.position = position;
    step.kv_type = form.type;
    step.kv_positions = kPositions;
    const KvLayerState layer{keys_.data(), values_.data()};
    step.kv = {&layer, 1};
    StepShape shape{0, count, threads, position};
    const SharedNeeds needs = call_->shared_needs(kPositions);
    counters_.resize(needs.counters * 64 + 64);
    bytes_.assign(needs.bytes + 64, 0xee);
    auto aligned = [](std::vector<uint8_t>& v) {
      return v.data() + (64 - reinterpret_cast<uintptr_t>(v.data()) % 64) % 64;
    };
    if (shared)
      shape.shared = {aligned(counters_), aligned(bytes_), needs.bytes};
    const uint64_t items = call_->items(shape);
    if (parallel) {
      std::atomic<uint64_t> next{0};
      std::vector<std::thread> workers;
      for (unsigned w = 0; w < threads; ++w)
        workers.emplace_back([&] {
          std::vector<uint8_t> scratch(call_->scratch_bytes() + 64);
          for (uint64_t item; (item = next.fetch_add(1)) < items;)
            call_->run(step, shape, item, item + 1, aligned(scratch));
        });
      for (std::thread& worker : workers)
        worker.join();
    } else {
      for (uint64_t item = items; item-- > 0;)
        call_->run(step, shape, item, item + 1, runner_.scratch());
    }
    for (const uint8_t byte : counters_)
      EXPECT_EQ(byte, 0) << "a counter is not as the next step wants it";
    std::vector<uint8_t> out;
    for (uint64_t t = 0; t < count; ++t) {
      const auto* row = runner_.bytes(out_, t);
      out.insert(out.end(), row, row + form.heads * form.v_dim * sizeof(float));
      const auto* act = runner_.bytes(act_, t);
      if (form.quantized)
        out.insert(out.end(), act, act + formats::q8_act_layout(form.heads * form.v_dim).bytes);
    }
    return out;
  }

  std::vector<double> reference(uint64_t position) const {
    const Form& form = GetParam();
    std::vector<double> out;
    for (uint64_t head = 0; head < form.heads; ++head) {
      const uint64_t kv_head = head / (form.heads / form.kv_heads), end = position + 1;
      const uint64_t window = form.group_windows.empty() ? form.window : form.group_windows[kv_head];
      const uint64_t begin = window != 0 && end > window ? end - window : 0;
      std::vector<double> weights, sums(form.v_dim);
      double total = 0;
      for (uint64_t p = begin; p < end; ++p) {
        double score = 0;
        for (uint64_t i = 0; i < form.k_dim; ++i)
          score += static_cast<double>(all_q_[(position * form.heads + head) * form.k_dim + i]) *
                   k_[(kv_head * kPositions + p) * form.k_dim + i];
        const double weight = std::exp(0.5 * score);
        total += weight;
        for (uint64_t i = 0; i < form.v_dim; ++i)
          sums[i] += weight * v_[(kv_head * kPositions + p) * form.v_dim + i];
      }
      for (const double sum : sums)
        out.push_back(sum / total);
    }
    return out;
  }

  OpRunner runner_{kBatch};
  uint32_t q_ = 0, out_ = 0, act_ = 0;
  const Call* call_ = nullptr;
  std::vector<uint8_t> keys_, values_, counters_, bytes_;
  std::vector<float> k_, v_, all_q_;
};

TEST_P(Attention, AgreesWithPlainArithmetic) {
  const uint64_t width = GetParam().heads * GetParam().v_dim;
  for (const uint64_t position : {0u, 255u, 256u, 700u, 1087u}) {
    const std::vector<uint8_t> got = run(position, 1, 4, true);
    const std::vector<double> want = reference(position);
    for (uint64_t i = 0; i < width; ++i) {
      float value;
      std::memcpy(&value, got.data() + i * 4, 4);
      ASSERT_NEAR(value, want[i], kError * std::max(1.0, std::abs(want[i]))) << "position " << position << ", " << i;
    }
  }
}

TEST_P(Attention, GivesTheSameBitsHoweverItIsCut) {
  for (const uint64_t position : {250u, 511u, 900u, 1040u}) {
    const std::vector<uint8_t> whole = run(position, kBatch, 1, false);
    EXPECT_EQ(run(position, kBatch, 16, true), whole);
    const size_t each = whole.size() / kBatch;
    auto tokens = [&](uint64_t first, uint64_t count) {
      return std::vector<uint8_t>(whole.begin() + first * each, whole.begin() + (first + count) * each);
    };
    for (const uint64_t count : {1u, 3u, 7u, 16u}) {
      EXPECT_EQ(run(position + 5, count, 1, true), tokens(5, count));
      for (const unsigned threads : {2u, 5u, 16u, 64u})
        EXPECT_EQ(run(position + 5, count, threads, true), tokens(5, count)) << count << " tokens, " << threads;
      EXPECT_EQ(run(position + 5, count, 3, true, true), tokens(5, count)) << count << " tokens in parallel";
    }
  }
}

TEST_P(Attention, CutsALongContextByPositions) {
  if (GetParam().window != 0)
    GTEST_SKIP() << "a window is short";
  const StepShape here{0, 1, 16, 4000, {nullptr, nullptr, UINT64_MAX}},
      begin{0, 1, 16, 100, {nullptr, nullptr, UINT64_MAX}};
  EXPECT_GE(call_->items(here), 4 * std::min<uint64_t>(call_->items(begin), GetParam().kv_heads));
  EXPECT_TRUE(call_->by_position());
}

#if defined(__x86_64__)
float bf16_value(uint16_t bits) {
  const uint32_t whole = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &whole, 4);
  return value;
}

/// To bf16, halves to even.
float rounded(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bf16_value(static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

/// Tile registers in memory, for machines that have none.
struct PlainTiles {
  static void begin() { open = true; }
  static void end() { open = false; }
  template <int T>
  static void zero() {
    std::memset(tiles[T], 0, sizeof tiles[T]);
  }
  template <int T>
  static void load(const uint8_t* from, uint64_t stride) {
    for (uint64_t r = 0; r < 16; ++r)
      std::memcpy(tiles[T] + 64 * r, from + stride * r, 64);
  }
  template <int T>
  static void store(uint8_t* to, uint64_t stride) {
    for (uint64_t r = 0; r < 16; ++r)
      std::memcpy(to + stride * r, tiles[T] + 64 * r, 64);
  }
  template <int kSums, int kLeft, int kRight>
  static void dot() {
    EXPECT_TRUE(open);
    auto half = [](const uint8_t* at) {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      return bf16_value(bits);
    };
    for (uint64_t r = 0; r < 16; ++r)
      for (uint64_t c = 0; c < 16; ++c) {
        float sum;
        std::memcpy(&sum, tiles[kSums] + 64 * r + 4 * c, 4);
        for (uint64_t i = 0; i < 32; ++i)
          sum += half(tiles[kLeft] + 64 * r + 2 * i) * half(tiles[kRight] + i / 2 * 64 + 4 * c + 2 * (i % 2));
        std::memcpy(tiles[kSums] + 64 * r + 4 * c, &sum, 4);
      }
  }

  static inline uint8_t tiles[8][1024];
  static inline bool open = false;
};

class AttentionOnTiles : public Attention {
protected:
  void SetUp() override {
    const CpuState cpu = read_cpu_state();
    for (const char* name : {"avx512bw", "avx512dq", "avx512_bf16"})
      if (feature_state(name, cpu) != FeatureState::kUsable)
        GTEST_SKIP() << "this machine lacks " << name;
    Attention::SetUp();
  }

  /// Rows of the heads of KV head `kv_head` and `count` tokens from `position` on, as far as they see `chunk`.
  struct Sums {
    std::vector<AttentionRow> rows;
    std::vector<float> values;
  };
  Sums sum(uint64_t kv_head, uint64_t position, uint64_t count, uint64_t chunk, float softcap) {
    const Form& form = GetParam();
    const KvShape kv{form.kv_heads, form.k_dim, form.v_dim, form.window};
    const uint64_t group = form.heads / form.kv_heads, first = chunk * kAttentionChunk;
    StepContext step;
    step.kv_type = form.type;
    step.kv_positions = kPositions;
    const KvLayerState layer{keys_.data(), values_.data()};
    step.kv = {&layer, 1};
    Sums out;
    out.values.assign(count * group * kv.v_stride(), -1.0f);
    for (uint64_t t = 0; t < count; ++t)
      for (uint64_t h = 0; h < group; ++h) {
        const uint64_t end = position + t + 1, begin = form.window != 0 && end > form.window ? end - form.window : 0;
        if (end <= first || begin >= first + kAttentionChunk)
          continue;
        out.rows.push_back({all_q_.data() + ((position + t) * form.heads + kv_head * group + h) * form.k_dim,
                            out.values.data() + out.rows.size() * kv.v_stride(), std::max(begin, first),
                            std::min(end, first + kAttentionChunk), 0, 0});
      }
    const AttentionTask task{out.rows.data(),
                             out.rows.size(),
                             KvBlocks(step, kv, 0, kv_head),
                             form.k_dim,
                             kv.v_stride(),
                             0.5f,
                             softcap,
                             form.type,
                             kv.key_group_bytes(form.type),
                             kv.value_row_bytes(form.type)};
    std::vector<uint8_t> scratch(tiled::Room(nullptr, form.k_dim, kv.v_stride()).bytes + 64, 0xff);
    tiled::attend<PlainTiles>(task, scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64);
    return out;
  }

  /// The row's result in doubles, of rounded operands.
  void expect_sums(const AttentionRow& row, uint64_t kv_head, float softcap) const {
    const Form& form = GetParam();
    std::vector<double> scores, sums(form.v_dim), sizes(form.v_dim);
    double largest = -1e30, total = 0;
    for (uint64_t p = row.begin; p < row.end; ++p) {
      double score = 0;
      for (uint64_t i = 0; i < form.k_dim; ++i)
        score += static_cast<double>(rounded(row.q[i])) * rounded(k_[(kv_head * kPositions + p) * form.k_dim + i]);
      score *= 0.5;
      scores.push_back(softcap > 0 ? softcap * std::tanh(score / softcap) : score);
      largest = std::max(largest, scores.back());
    }
    for (uint64_t p = row.begin; p < row.end; ++p) {
      const double weight = std::exp(scores[p - row.begin] - largest);
      total += weight;
      for (uint64_t i = 0; i < form.v_dim; ++i) {
        const double value = rounded(v_[(kv_head * kPositions + p) * form.v_dim + i]);
        sums[i] += weight * value;
        sizes[i] += std::abs(weight * value);
      }
    }
    ASSERT_NEAR(row.max, largest, 1e-5);
    ASSERT_NEAR(row.sum, total, 1e-5 * total);
    for (uint64_t i = 0; i < form.v_dim; ++i) // weights are rounded
      ASSERT_NEAR(row.acc[i], sums[i], sizes[i] / 256) << i;
  }
};

TEST_P(AttentionOnTiles, AgreesWithPlainArithmetic) {
  for (const float softcap : {0.0f, 2.0f})
    for (const auto [position, chunk] : {std::pair<uint64_t, uint64_t>{0, 0}, {490, 0}, {505, 1}, {700, 0}, {1040, 2}})
      for (const uint64_t head : {uint64_t{0}, GetParam().kv_heads - 1}) {
        const Sums got = sum(head, position, 21, chunk, softcap);
        for (const AttentionRow& row : got.rows)
          ASSERT_NO_FATAL_FAILURE(expect_sums(row, head, softcap)) << position << ", chunk " << chunk;
      }
}

TEST_P(AttentionOnTiles, GivesTheSameBitsHoweverTokensAreCut) {
  const uint64_t v_stride = (GetParam().v_dim + 15) / 16 * 16;
  const Sums whole = sum(0, 600, 40, 1, 0);
  size_t next = 0;
  for (uint64_t token = 0, count; token < 40; token += count) {
    count = std::min<uint64_t>(token % 7 + 1, 40 - token);
    const Sums some = sum(0, 600 + token, count, 1, 0);
    for (size_t r = 0; r < some.rows.size(); ++r, ++next) {
      EXPECT_EQ(std::memcmp(some.rows[r].acc, whole.rows[next].acc, v_stride * sizeof(float)), 0) << next;
      EXPECT_EQ(some.rows[r].sum, whole.rows[next].sum);
      EXPECT_EQ(some.rows[r].max, whole.rows[next].max);
    }
  }
  EXPECT_EQ(next, whole.rows.size());
}

INSTANTIATE_TEST_SUITE_P(Forms, AttentionOnTiles, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(form.param.name); });
#endif

INSTANTIATE_TEST_SUITE_P(Forms, Attention, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(form.param.name); });

} // namespace
} // namespace cortiq::runtime
