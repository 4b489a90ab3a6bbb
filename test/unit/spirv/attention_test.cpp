// Attention and what is done to queries, keys and values before it, against the same arithmetic in doubles.

#include <cmath>

#include "formats/artifact/shader_abi.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"
#include "test/unit/spirv/numbers.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // the numbers of shader_abi.h

struct HeadShape {
  uint32_t heads, kv_heads, dim, v_dim, local;
  uint32_t window = 0, ring = 0;
  float cap = 0;
  bool sinks = false, half = false;
  uint32_t shares = 1;
  bool step = false;              ///< token by token, with one dispatch for all of attention
  bool bytes = false;             ///< the cache is in 8 bits
  bool join = false;              ///< which joins its shares as well
  bool tile = false;              ///< with workgroups that take sixteen tokens
  uint32_t batch = 30, steps = 3; ///< tokens that come at once, and how often; those of `step` come one by one
  bool matrices = false;          ///< on products of matrices of halves
  bool rows = false;              ///< heads without norms, prepared by a workgroup a token
  float large = 1;                ///< factor of queries
};

/// Values as a cache in 8 bits gives them back.
template <class T>
void round_to_bytes(T* x, uint32_t count) {
  for (uint32_t first = 0; first < count; first += kCacheGroup) {
    const uint32_t end = std::min(count, first + kCacheGroup);
    float peak = 0;
    for (uint32_t i = first; i < end; ++i)
      peak = std::max(peak, std::abs(static_cast<float>(x[i])));
    for (uint32_t i = first; i < end && peak > 0; ++i)
      x[i] = std::nearbyint(static_cast<float>(x[i]) * (127.0f / peak)) * (peak / 127.0f);
  }
}
uint32_t byte_words(uint32_t values) {
  return (values + 31) / 32 + (values + 3) / 4;
}

/// rope_kv writes positions 0.. token by token, attention reads them.
class Attention : public ShaderTest {
protected:
  struct Inputs {
    explicit Inputs(const HeadShape& s)
        : batch(s.step ? 1 : s.batch), steps(s.step ? 36 : s.steps), positions(batch * steps),
          q_stride(s.heads * s.dim), k_stride(s.kv_heads * s.dim), v_stride(s.kv_heads * s.v_dim),
          q(random_floats(positions * q_stride, 1)), k(random_floats(positions * k_stride, 2)),
          v(random_floats(positions * v_stride, 3)), sinks(random_floats(s.heads, 4)), q_norm(random_floats(s.dim, 5)) {
      for (float& value : q_norm)
        value *= s.large;
    }
    uint32_t batch, steps, positions, q_stride, k_stride, v_stride;
    std::vector<float> q, k, v, sinks, q_norm;
  };

  void check(const HeadShape& s) {
    std::vector<float> got;
    attend(s, got);
    if (!HasFatalFailure())
      compare(s, got);
  }

  /// What comes of all positions.
  void attend(const HeadShape& s, std::vector<float>& got) {
    const auto [kBatch, kSteps, positions, q_stride, k_stride, v_stride, q, k, v, sinks, q_norm] = Inputs(s);
    const uint32_t row = k_stride + v_stride, pairs = s.dim / 4;
    const uint32_t row_words =
        s.bytes ? s.kv_heads * (byte_words(s.dim) + byte_words(s.v_dim)) : row / (s.half ? 2 : 1);
    Words cache((s.ring ? s.ring : positions) * row_words);
    const uint32_t out_stride = lane_floats(s.heads * s.v_dim);
    for (uint32_t step = 0; step < kSteps; ++step) {
      Dispatch d;
      Words& arena = d.buffers[kArena];
      const auto take = [&](const std::vector<float>& x, uint32_t stride) {
        const auto first = x.begin() + step * kBatch * stride;
        append(arena, {first, first + kBatch * stride});
      };
      take(q, q_stride), take(k, k_stride), take(v, v_stride);
      const uint32_t k_at = kBatch * q_stride, v_at = k_at + kBatch * k_stride, out_at = v_at + kBatch * v_stride;
      const uint32_t shares_at = out_at + kBatch * out_stride;
      const uint32_t counters_at = shares_at + kBatch * s.heads * s.shares * (s.v_dim + 2);
      arena.resize(counters_at + s.heads);
      append(d.buffers[kVectors], q_norm);
      append(d.buffers[kVectors], sinks);
      d.buffers[kCache] = cache;
      Words& words = d.buffers[kStep] = {kBatch, step * kBatch, 0, 0};
      words.resize(4 + kBatch);
      for (const bool sine : {false, true})
        for (uint32_t t = 0; t < kBatch; ++t)
          for (uint32_t i = 0; i < pairs; ++i)
            words.push_back(bits(static_cast<float>(sine ? std::sin(angle(step * kBatch + t, i))
                                                         : std::cos(angle(step * kBatch + t, i)))));
      d.push = {0,          0,        out_at,   0,        k_at,       q_stride,
                out_stride, k_stride, v_at,     v_stride, 4 + kBatch, 4 + kBatch + kBatch * pairs,
                0,          s.dim,    shares_at};
      std::vector<std::pair<uint32_t, uint32_t>> shape = {{kSpecLocal, s.local},
                                                          {kSpecHeads, s.heads},
                                                          {kSpecKvHeads, s.kv_heads},
                                                          {kSpecHeadDim, s.dim},
                                                          {kSpecValueDim, s.v_dim},
                                                          {kSpecRing, s.ring},
                                                          {kSpecCache, s.bytes  ? kCacheQ8
                                                                       : s.half ? kCacheF16
                                                                                : kCacheF32}};
      auto prep = shape, attend = shape;
      prep.push_back({kSpecPairs, pairs});
      if (!s.rows)
        prep.push_back({kSpecNormFlags, 1});
      attend.insert(attend.end(), {{kSpecScale, bits(0.3f)},
                                   {kSpecWindow, s.window},
                                   {kSpecSoftcap, bits(s.cap)},
                                   {kSpecSinks, s.sinks},
                                   {kSpecShares, s.shares},
                                   {kSpecOutOrder, 1}});
      if (s.step) {
        attend.insert(attend.end(), {{kSpecPrep, 1}, {kSpecPairs, pairs}, {kSpecNormFlags, 1}, {kSpecOneToken, 1}});
        if (s.join) {
          attend.push_back({kSpecJoin, 1});
          d.push[kPushCounters] = counters_at;
        }
      } else {
        d.grid = {s.rows ? 1 : s.heads + 2 * s.kv_heads, 1, kBatch};
        run(s.rows ? "rope_kv_row" : "rope_kv", prep, d);
        d.push[3] = s.dim; // sinks
      }
      const uint32_t tokens = s.tile ? 16 : s.matrices ? 64 : 1; // of a workgroup
      if (tokens != 1)
        std::erase(attend, std::pair<uint32_t, uint32_t>(kSpecShares, 1));
      if (s.tile)
        attend.push_back({kSpecTokens, tokens});
      d.grid = {s.heads, s.shares, (kBatch + tokens - 1) / tokens};
      run(s.tile ? "attention_tile" : s.matrices ? "attention_cm_plain" : "attention", attend, d);
      d.grid = {s.heads, 1, kBatch};
      if (s.join)
        for (uint32_t h = 0; h < s.heads; ++h)
          ASSERT_EQ(d.buffers[kArena][counters_at + h], 0u);
      else if (s.shares > 1)
        run("attention_combine",
            {{kSpecLocal, s.local},
             {kSpecHeads, s.heads},
             {kSpecValueDim, s.v_dim},
             {kSpecShares, s.shares},
             {kSpecOutOrder, 1}},
            d);
      if (HasFatalFailure())
        return;
      cache = d.buffers[kCache];
      for (uint32_t t = 0; t < kBatch; ++t)
        for (uint32_t i = 0; i < s.heads * s.v_dim; ++i)
          got.push_back(std::bit_cast<float>(d.buffers[kArena][out_at + t * out_stride + lane_place(i)]));
    }
  }

  void compare(const HeadShape& s, const std::vector<float>& got) {
    auto [batch, steps, positions, q_stride, k_stride, v_stride, q, k, v, sinks, q_norm] = Inputs(s);
    const std::vector<float> none;
    std::vector<std::vector<double>> keys;
    for (uint32_t p = 0; p < positions; ++p)
      for (uint32_t h = 0; h < s.kv_heads; ++h)
        keys.push_back(turned(&k[p * k_stride + h * s.dim], s.dim, none, p));
    if (s.bytes) {
      for (std::vector<double>& key : keys)
        round_to_bytes(key.data(), s.dim);
      for (uint32_t i = 0; i < positions * s.kv_heads; ++i)
        round_to_bytes(&v[i * s.v_dim], s.v_dim);
    }
    std::vector<double> want;
    for (uint32_t p = 0; p < positions; ++p)
      for (uint32_t h = 0; h < s.heads; ++h) {
        const uint32_t kv_head = h / (s.heads / s.kv_heads);
        const std::vector<double> query = turned(&q[p * q_stride + h * s.dim], s.dim, s.rows ? none : q_norm, p);
        double total = s.sinks ? std::exp(sinks[h]) : 0;
        std::vector<double> sums(s.v_dim);
        for (uint32_t j = s.window && p + 1 > s.window ? p + 1 - s.window : 0; j <= p; ++j) {
          double score = 0;
          for (uint32_t i = 0; i < s.dim; ++i)
            score += 0.3 * query[i] * keys[j * s.kv_heads + kv_head][i];
          const double w = std::exp(s.cap > 0 ? s.cap * std::tanh(score / s.cap) : score);
          total += w;
          for (uint32_t i = 0; i < s.v_dim; ++i)
            sums[i] += w * v[j * v_stride + kv_head * s.v_dim + i];
        }
        for (const double sum : sums)
          want.push_back(sum / total);
      }
    expect_near(got, want, s.half || s.bytes || s.matrices ? 5e-3 : 5e-6);
  }

private:
  static double angle(uint32_t position, uint32_t pair) { return position * std::pow(100.0, -0.1 * pair); }

  static std::vector<double> turned(const float* x, uint32_t dim, const std::vector<float>& norm, uint32_t position) {
    std::vector<double> out(x, x + dim);
    double squares = 0;
    for (const double value : out)
      squares += value * value;
    for (uint32_t i = 0; i < dim && !norm.empty(); ++i)
      out[i] *= norm[i] / std::sqrt(squares / dim + 1e-6);
    for (uint32_t i = 0; i < dim / 4; ++i) {
      const double a = out[i], b = out[i + dim / 4], turn = angle(position, i);
      out[i] = a * std::cos(turn) - b * std::sin(turn);
      out[i + dim / 4] = b * std::cos(turn) + a * std::sin(turn);
    }
    return out;
  }
};

/// A sliding window in a ring, with sinks and a cap of scores.
constexpr HeadShape kSliding = {.heads = 2,
                                .kv_heads = 2,
                                .dim = 24,
                                .v_dim = 10,
                                .local = 16,
                                .window = 17,
                                .ring = 64,
                                .cap = 1.5f,
                                .sinks = true};

TEST_F(Attention, GroupedHeads) {
  check({.heads = 4, .kv_heads = 2, .dim = 16, .v_dim = 16, .local = 32});
}
TEST_F(Attention, WindowsSinksAndCaps) {
  check(kSliding);
}
TEST_F(Attention, WideValuesInHalves) {
  check({.heads = 3, .kv_heads = 1, .dim = 16, .v_dim = 80, .local = 32, .half = true});
}

TEST_F(Attention, Tiles) {
  check({.heads = 4, .kv_heads = 2, .dim = 16, .v_dim = 16, .local = 32, .tile = true});
  HeadShape shape = kSliding;
  shape.tile = true;
  check(shape);
  shape = {.heads = 3, .kv_heads = 1, .dim = 48, .v_dim = 80, .local = 64, .half = true, .tile = true};
  check(shape);
  shape.half = false, shape.bytes = true;
  check(shape);
}

TEST_F(Attention, HeadsOfAToken) {
  HeadShape shape{.heads = 4, .kv_heads = 2, .dim = 24, .v_dim = 10, .local = 32};
  shape.rows = true;
  check(shape);
  shape.dim = 16, shape.v_dim = 16;
  shape.half = true;
  check(shape);
  shape.half = false, shape.bytes = true;
  check(shape);
}
TEST_F(Attention, SixtyFourTokensByMatrices) {
  HeadShape shape{.heads = 4, .kv_heads = 2, .dim = 40, .v_dim = 48, .local = 256, .batch = 70, .steps = 2};
  shape.half = shape.matrices = true; // neither whole matrices nor whole runs of columns
  check(shape);
  shape.half = false, shape.bytes = true;
  check(shape);
  shape = kSliding;
  shape.local = 256, shape.matrices = true;
  check(shape);
}

/// Whose modules are made once for the tests that use it.
constexpr HeadShape kCutPrompt = {.heads = 2,
                                  .kv_heads = 1,
                                  .dim = 24,
                                  .v_dim = 32,
                                  .local = 256,
                                  .window = 50,
                                  .half = true,
                                  .batch = 84,
                                  .steps = 1,
                                  .matrices = true};

TEST_F(Attention, SoundOfLargeQueriesByMatrices) {
  HeadShape shape = kCutPrompt;
  shape.large = 3e30f;
  std::vector<float> got;
  attend(shape, got);
  float largest = 0;
  for (const float value : Inputs(shape).v)
    largest = std::max(largest, std::abs(value));
  for (const float value : got)
    ASSERT_LE(std::abs(value), largest);
}
TEST_F(Attention, SameBitsHoweverAPromptIsCut) {
  std::vector<float> whole;
  attend(kCutPrompt, whole);
  for (const uint32_t batch : {1u, 7u, 42u}) {
    HeadShape shape = kCutPrompt;
    shape.batch = batch, shape.steps = kCutPrompt.batch / batch;
    std::vector<float> got;
    attend(shape, got);
    ASSERT_EQ(got.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i)
      ASSERT_EQ(bits(got[i]), bits(whole[i])) << "value " << i << ", " << batch << " at a time";
  }
}

TEST_F(Attention, Bytes) {
  check({.heads = 3, .kv_heads = 1, .dim = 48, .v_dim = 80, .local = 32, .bytes = true});
}
TEST_F(Attention, BytesOfASlidingWindow) {
  HeadShape shape = kSliding;
  shape.bytes = true;
  check(shape);
}
TEST_F(Attention, StepsWithBytes) {
  check({.heads = 4, .kv_heads = 2, .dim = 48, .v_dim = 24, .local = 64, .step = true, .bytes = true});
}

TEST_F(Attention, Shares) {
  check({.heads = 2, .kv_heads = 1, .dim = 16, .v_dim = 16, .local = 32, .sinks = true, .shares = 3});
}
TEST_F(Attention, StepsInOneDispatch) {
  check({.heads = 4, .kv_heads = 2, .dim = 32, .v_dim = 32, .local = 64, .step = true});
  HeadShape shape = kSliding;
  shape.local = shape.ring = 32;
  shape.half = shape.step = true;
  shape.shares = 2;
  check(shape);
}
TEST_F(Attention, SharesThatTheLastOfThemJoins) {
  HeadShape shape{.heads = 4,
                  .kv_heads = 2,
                  .dim = 128,
                  .v_dim = 64,
                  .local = 64,
                  .sinks = true,
                  .half = true,
                  .shares = 3,
                  .step = true,
                  .join = true};
  check(shape);
  shape.dim = 64;
  shape.v_dim = 80;
  shape.half = false;
  shape.shares = 2;
  check(shape);
}

} // namespace
} // namespace cortiq::codegen
