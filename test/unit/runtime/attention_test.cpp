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

INSTANTIATE_TEST_SUITE_P(Forms, Attention, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(form.param.name); });

} // namespace
} // namespace cortiq::runtime
