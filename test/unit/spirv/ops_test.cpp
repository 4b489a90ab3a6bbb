// The operations without weights, each against the same arithmetic in doubles.

#include <cmath>
#include <functional>

#include "formats/artifact/shader_abi.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // the numbers of shader_abi.h

uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

/// Error of f32 arithmetic with the device's exp and sqrt, in parts of the largest value.
constexpr double kBound = 2e-6;

void expect_near(const std::vector<float>& got, const std::vector<double>& want, double bound = kBound) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 1e-30;
  for (const double w : want)
    largest = std::max(largest, std::fabs(w));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_LE(std::fabs(got[i] - want[i]), bound * largest) << "value " << i << ": " << got[i] << ", " << want[i];
}

/// Rows of three values of `count` floats: input, aux, and room for out in lane order and a third.
class OpTest : public ShaderTest {
protected:
  void lay_out(uint32_t count, uint32_t tokens) {
    n = count;
    stride = (count + 3) / 4 * 4;
    token_count = tokens;
    d = {};
    input = random_floats(size_t{n} * tokens, 1);
    aux = random_floats(size_t{n} * tokens, 2);
    vector = random_floats(n, 3);
    vector2 = random_floats(n, 4);
    Words& arena = d.buffers[kArena];
    arena.assign(2 * stride * tokens, 0);
    for (uint32_t t = 0; t < tokens; ++t)
      for (uint32_t i = 0; i < n; ++i) {
        arena[t * stride + i] = bits(input[t * n + i]);
        arena[(tokens + t) * stride + i] = bits(aux[t * n + i]);
      }
    out_at = 2 * stride * tokens;
    third_at = out_at + lane_floats(n) * tokens;
    arena.resize(third_at + stride * tokens, bits(-77.0f));
    append(d.buffers[kVectors], vector);
    append(d.buffers[kVectors], vector2);
    d.buffers[kStep] = {tokens, 0, 0, 0};
    d.push = {0, 0, out_at, 0, stride * tokens, stride, lane_floats(n), stride, third_at, stride, 0, 0, n};
  }
  std::vector<float> out(bool lanes) {
    std::vector<float> values;
    for (uint32_t t = 0; t < token_count; ++t)
      for (uint32_t i = 0; i < n; ++i)
        values.push_back(
            std::bit_cast<float>(d.buffers[kArena][out_at + t * lane_floats(n) + (lanes ? lane_place(i) : i)]));
    return values;
  }
  void run_elements(std::string_view name, std::vector<std::pair<uint32_t, uint32_t>> constants) {
    constants.insert(constants.end(), {{kSpecLocal, 64}, {kSpecRows, n}});
    d.grid = {(n + 63) / 64, 1, token_count};
    run(name, constants, d);
  }

  uint32_t n = 0, stride = 0, token_count = 0, out_at = 0, third_at = 0;
  std::vector<float> input, aux, vector, vector2;
  Dispatch d;
};

TEST_F(OpTest, Norm) {
  lay_out(83, 2);
  d.grid = {1, 1, 2};
  run("rms_norm",
      {{kSpecLocal, 64},
       {kSpecRows, n},
       {kSpecEps, bits(1e-5f)},
       {kSpecScale, bits(0.5f)},
       {kSpecAdd, 1},
       {kSpecSumOut, 1},
       {kSpecBias, 1},
       {kSpecOutOrder, 1}},
      d);
  std::vector<double> want, sums;
  for (uint32_t t = 0; t < 2; ++t) {
    double squares = 0;
    for (uint32_t i = 0; i < n; ++i) {
      sums.push_back(double{input[t * n + i]} + aux[t * n + i]);
      squares += sums.back() * sums.back();
    }
    for (uint32_t i = 0; i < n; ++i)
      want.push_back(sums[t * n + i] / std::sqrt(squares / n + 1e-5) * vector[i] * 0.5 + vector2[i]);
  }
  expect_near(out(true), want);
  std::vector<float> third;
  for (uint32_t t = 0; t < 2; ++t)
    for (uint32_t i = 0; i < n; ++i)
      third.push_back(std::bit_cast<float>(d.buffers[kArena][third_at + t * stride + i]));
  expect_near(third, sums);
}

TEST_F(OpTest, CenteredNorm) {
  lay_out(64, 1);
  run("rms_norm", {{kSpecLocal, 32}, {kSpecRows, n}, {kSpecCentered, 1}, {kSpecWeighted, 0}}, d);
  double mean = 0, squares = 0;
  for (const float x : input)
    mean += x / 64.0;
  for (const float x : input)
    squares += (x - mean) * (x - mean);
  std::vector<double> want;
  for (const float x : input)
    want.push_back((x - mean) / std::sqrt(squares / n + 1e-6));
  expect_near(out(false), want);
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST_F(OpTest, GatedUnits) {
  constexpr double kBend = 1.702, kWide = 1.5;
  const std::vector<std::function<double(double, double)>> functions = {
      [](double g, double u) { return g * logistic(g) * u; },
      [=](double g, double u) {
        return 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g))) * u;
      },
      [](double g, double u) { return 0.5 * g * (1 + std::erf(g / std::sqrt(2))) * u; },
      [](double g, double u) { return std::max(g, 0.0) * u; },
      [](double g, double u) { return kBend * std::tanh(g / kBend) * logistic(g) * kWide * std::tanh(u / kWide); },
      [=](double g, double u) {
        g = std::min(g, kWide);
        return g * logistic(kBend * g) * (std::clamp(u, -kWide, kWide) + 1);
      }};
  for (uint32_t a = 0; a < functions.size(); ++a) {
    SCOPED_TRACE(a);
    lay_out(70, 2);
    run_elements("glu",
                 {{kSpecActivation, a}, {kSpecAlpha, bits(kBend)}, {kSpecLimit, bits(kWide)}, {kSpecOutOrder, 1}});
    std::vector<double> want;
    for (size_t i = 0; i < input.size(); ++i)
      want.push_back(functions[a](input[i], aux[i]));
    expect_near(out(true), want);
  }
}

TEST_F(OpTest, Elements) {
  std::vector<double> want;
  lay_out(70, 2);
  run_elements("add", {{kSpecScale, bits(0.25f)}});
  for (size_t i = 0; i < input.size(); ++i)
    want.push_back(input[i] + 0.25 * aux[i]);
  expect_near(out(false), want);

  lay_out(96, 2);
  run_elements("gate", {{kSpecGroup, 8}, {kSpecOutOrder, 1}});
  want.clear();
  for (uint32_t i = 0; i < 2 * n; ++i)
    want.push_back(input[i] * logistic(aux[i / n * n + i % n / 8]));
  expect_near(out(true), want);

  lay_out(96, 1);
  run_elements("reorder", {});
  EXPECT_EQ(out(true), input);

  lay_out(100, 1);
  run_elements("logits", {{kSpecScale, bits(3.0f)}, {kSpecSoftcap, bits(2.0f)}});
  want.clear();
  for (const float x : input)
    want.push_back(2 * std::tanh(3.0 * x / 2));
  expect_near(out(false), want);
}

TEST_F(OpTest, Argmax) {
  lay_out(1000, 3);
  Words& arena = d.buffers[kArena];
  arena[3] = bits(NAN);
  arena[stride + 777] = arena[stride + 65] = bits(50.0f); // the first of equals
  for (uint32_t i = 0; i < n; ++i)
    arena[2 * stride + i] = bits(-INFINITY);
  // The head works on tokens 1 and 2.
  d.buffers[kStep] = {3, 0, 1, 2};
  d.push.resize(16);
  d.push[15] = 1;
  d.buffers[kResults].assign(8, 9999);
  d.grid = {1, 1, 3};
  run("argmax", {{kSpecLocal, 128}, {kSpecRows, n}}, d);
  EXPECT_EQ(d.buffers[kResults][4], 65u);
  EXPECT_EQ(d.buffers[kResults][5], 0u);
  // The same in parts, which a second dispatch joins.
  d.buffers[kResults].assign(8, 9999);
  d.grid = {7, 1, 3};
  d.push[2] = out_at;
  d.push[6] = 14;
  run("argmax", {{kSpecLocal, 128}, {kSpecRows, n}, {kSpecShares, 7}}, d);
  if (HasFatalFailure())
    return;
  d.grid = {1, 1, 3};
  d.push[1] = out_at;
  d.push[5] = 14;
  run("argmax", {{kSpecLocal, 64}, {kSpecRows, n}, {kSpecShares, 7}, {kSpecSum, 1}}, d);
  EXPECT_EQ(d.buffers[kResults][4], 65u);
  EXPECT_EQ(d.buffers[kResults][5], 0u);
  EXPECT_EQ(d.buffers[kResults][6], 9999u);
}

struct HeadShape {
  uint32_t heads, kv_heads, dim, v_dim, window, ring;
  float cap;
  bool sinks, half;
  uint32_t local, shares = 1;
  bool step = false;  ///< token by token, with one dispatch for all of attention
  bool bytes = false; ///< the cache is in 8 bits
  bool join = false;  ///< which joins its shares as well
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
  void check(const HeadShape& s) {
    const uint32_t kBatch = s.step ? 1 : 30, kSteps = s.step ? 36 : 3;
    const uint32_t q_stride = s.heads * s.dim, k_stride = s.kv_heads * s.dim, v_stride = s.kv_heads * s.v_dim;
    const uint32_t row = k_stride + v_stride, pairs = s.dim / 4, positions = kSteps * kBatch;
    const std::vector<float> q = random_floats(positions * q_stride, 1), k = random_floats(positions * k_stride, 2),
                             sinks = random_floats(s.heads, 4), q_norm = random_floats(s.dim, 5);
    std::vector<float> v = random_floats(positions * v_stride, 3);
    const uint32_t row_words =
        s.bytes ? s.kv_heads * (byte_words(s.dim) + byte_words(s.v_dim)) : row / (s.half ? 2 : 1);
    Words cache((s.ring ? s.ring : positions) * row_words);
    std::vector<float> got;
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
      prep.insert(prep.end(), {{kSpecPairs, pairs}, {kSpecNormFlags, 1}});
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
        d.grid = {s.heads + 2 * s.kv_heads, 1, kBatch};
        run("rope_kv", prep, d);
        d.push[3] = s.dim; // sinks
      }
      d.grid = {s.heads, s.shares, kBatch};
      run("attention", attend, d);
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
        const std::vector<double> query = turned(&q[p * q_stride + h * s.dim], s.dim, q_norm, p);
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
    expect_near(got, want, s.half || s.bytes ? 5e-3 : 5e-6);
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

TEST_F(Attention, GroupedHeads) {
  check({.heads = 4,
         .kv_heads = 2,
         .dim = 16,
         .v_dim = 16,
         .window = 0,
         .ring = 0,
         .cap = 0,
         .sinks = false,
         .half = false,
         .local = 32});
}
TEST_F(Attention, WindowsSinksAndCaps) {
  check({.heads = 2,
         .kv_heads = 2,
         .dim = 24,
         .v_dim = 10,
         .window = 17,
         .ring = 64,
         .cap = 1.5f,
         .sinks = true,
         .half = false,
         .local = 16});
}
TEST_F(Attention, WideValuesInHalves) {
  check({.heads = 3,
         .kv_heads = 1,
         .dim = 16,
         .v_dim = 80,
         .window = 0,
         .ring = 0,
         .cap = 0,
         .sinks = false,
         .half = true,
         .local = 32});
}

TEST_F(Attention, Bytes) {
  check({.heads = 3,
         .kv_heads = 1,
         .dim = 48,
         .v_dim = 80,
         .window = 0,
         .ring = 0,
         .cap = 0,
         .sinks = false,
         .half = false,
         .local = 32,
         .bytes = true});
}
TEST_F(Attention, BytesOfASlidingWindow) {
  check({.heads = 2,
         .kv_heads = 2,
         .dim = 24,
         .v_dim = 10,
         .window = 17,
         .ring = 64,
         .cap = 1.5f,
         .sinks = true,
         .half = false,
         .local = 16,
         .bytes = true});
}
TEST_F(Attention, StepsWithBytes) {
  check({.heads = 4,
         .kv_heads = 2,
         .dim = 48,
         .v_dim = 24,
         .window = 0,
         .ring = 0,
         .cap = 0,
         .sinks = false,
         .half = false,
         .local = 64,
         .step = true,
         .bytes = true});
}

TEST_F(Attention, Shares) {
  check({.heads = 2,
         .kv_heads = 1,
         .dim = 16,
         .v_dim = 16,
         .window = 0,
         .ring = 0,
         .cap = 0,
         .sinks = true,
         .half = false,
         .local = 32,
         .shares = 3});
}
TEST_F(Attention, StepsInOneDispatch) {
  check({.heads = 4,
         .kv_heads = 2,
         .dim = 32,
         .v_dim = 32,
         .window = 0,
         .ring = 0,
         .cap = 0,
         .sinks = false,
         .half = false,
         .local = 64,
         .step = true});
  check({.heads = 2,
         .kv_heads = 2,
         .dim = 24,
         .v_dim = 10,
         .window = 17,
         .ring = 32,
         .cap = 1.5f,
         .sinks = true,
         .half = true,
         .local = 32,
         .shares = 2,
         .step = true});
}
TEST_F(Attention, SharesThatTheLastOfThemJoins) {
  HeadShape shape{.heads = 4,
                  .kv_heads = 2,
                  .dim = 128,
                  .v_dim = 64,
                  .window = 0,
                  .ring = 0,
                  .cap = 0,
                  .sinks = true,
                  .half = true,
                  .local = 64,
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
