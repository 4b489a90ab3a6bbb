// The operations without weights and states, each against the same arithmetic in doubles.

#include <cmath>
#include <functional>

#include "formats/artifact/shader_abi.h"
#include "formats/codec/half.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"
#include "test/unit/spirv/expect_q8.h"
#include "test/unit/spirv/numbers.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // the numbers of shader_abi.h

/// Error of f32 arithmetic with the device's exp and sqrt, in parts of the largest value.
constexpr double kBound = 2e-6;

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
  expect_near(out(true), want, kBound);
  std::vector<float> third;
  for (uint32_t t = 0; t < 2; ++t)
    for (uint32_t i = 0; i < n; ++i)
      third.push_back(std::bit_cast<float>(d.buffers[kArena][third_at + t * stride + i]));
  expect_near(third, sums, kBound);
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
  expect_near(out(false), want, kBound);
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
    expect_near(out(true), want, kBound);
  }
}

TEST_F(OpTest, Elements) {
  std::vector<double> want;
  lay_out(70, 2);
  run_elements("add", {{kSpecScale, bits(0.25f)}});
  for (size_t i = 0; i < input.size(); ++i)
    want.push_back(input[i] + 0.25 * aux[i]);
  expect_near(out(false), want, kBound);

  lay_out(96, 2);
  run_elements("gate", {{kSpecGroup, 8}, {kSpecOutOrder, 1}});
  want.clear();
  for (uint32_t i = 0; i < 2 * n; ++i)
    want.push_back(input[i] * logistic(aux[i / n * n + i % n / 8]));
  expect_near(out(true), want, kBound);

  lay_out(96, 1);
  run_elements("reorder", {});
  EXPECT_EQ(out(true), input);

  lay_out(100, 1);
  run_elements("logits", {{kSpecScale, bits(3.0f)}, {kSpecSoftcap, bits(2.0f)}});
  want.clear();
  for (const float x : input)
    want.push_back(2 * std::tanh(3.0 * x / 2));
  expect_near(out(false), want, kBound);
}

/// A row of shaders/common/half_row.glsl as floats.
std::vector<float> of_half_row(std::span<const uint32_t> row, uint32_t count) {
  const float factor = std::bit_cast<float>(row[(count + 127) / 128 * 64]);
  std::vector<float> out;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t word = row[i / 4 * 2 + i % 2]; // of values 0 and 2, or 1 and 3
    out.push_back(factor * formats::half_to_float(static_cast<uint16_t>(word >> i % 4 / 2 * 16)));
  }
  return out;
}

TEST_F(OpTest, ResultsInEightAndSixteenBitsAreThoseOfFloats) {
  enum Form : uint32_t { kFloats, kEightBits, kHalf };
  const std::vector<std::pair<const char*, std::vector<std::pair<uint32_t, uint32_t>>>> ops = {
      {"rms_norm", {{kSpecScale, bits(0.5f)}, {kSpecBias, 1}, {kSpecAdd, 1}}},
      {"glu", {{kSpecActivation, 1}}},
      {"gate", {{kSpecGroup, 8}}}};
  for (const auto& [name, constants] : ops) {
    SCOPED_TRACE(name);
    std::vector<float> floats;
    for (const Form form : {kFloats, kEightBits, kHalf}) {
      lay_out(1096, 2);
      auto given = constants;
      given.insert(given.end(), {{kSpecLocal, 64}, {kSpecRows, n}, {kSpecQuantOut, form}});
      d.grid = {form == kHalf ? 1 : (n + 63) / 64, 1, token_count};
      run(name, given, d);
      if (HasFatalFailure())
        return;
      if (form == kFloats)
        floats = out(false);
      for (uint32_t t = 0; t < token_count; ++t) {
        const std::vector<float> want(floats.begin() + t * n, floats.begin() + (t + 1) * n);
        const std::span row = std::span(d.buffers[kArena]).subspan(out_at + t * lane_floats(n), lane_floats(n));
        if (form == kEightBits)
          expect_q8(row.first(q8_words(n)), want);
        if (form == kHalf)
          expect_near(of_half_row(row, n), {want.begin(), want.end()}, 0x1p-11);
      }
    }
  }
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

} // namespace
} // namespace cortiq::codegen
