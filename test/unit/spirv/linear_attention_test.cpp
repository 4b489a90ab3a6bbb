// The linear attentions with a decay a channel against their written-out forms, with states that steps leave to each
// other.

#include <cmath>
#include <random>

#include "formats/artifact/shader_abi.h"
#include "test/cases/linear_attention_forms.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // the numbers of shader_abi.h
using test::Rows;

constexpr uint32_t kTokens = 14;
// Some forty f32 roundings one after the other, on values near 1.
constexpr double kTolerance = 2e-5;

Rows random_rows(uint32_t width, double spread, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(static_cast<float>(-spread), static_cast<float>(spread));
  Rows out(kTokens, std::vector<double>(width));
  for (auto& row : out)
    for (double& value : row)
      value = distribution(random);
  return out;
}

std::vector<float> random_vector(uint32_t count, double spread, uint32_t seed) {
  const std::vector<double> row = random_rows(count, spread, seed)[0];
  return {row.begin(), row.end()};
}

/// An operation whose dispatch walks the tokens of a batch.
struct Walk {
  std::string name;
  std::vector<std::pair<uint32_t, uint32_t>> constants;
  struct Input {
    PushWord start, stride;
    Rows rows;
  };
  std::vector<Input> inputs;
  std::vector<std::pair<PushWord, std::vector<float>>> vectors;
  uint32_t heads, state, width; ///< floats of the state, values of a result
};

class LinearAttention : public ShaderTest {
protected:
  /// Holds every division of the tokens into batches against `want`.
  void expect(const Walk& walk, const Rows& want) {
    for (const uint32_t batch : {kTokens, 1u, 4u}) {
      SCOPED_TRACE(batch);
      double error = 0, size = 0;
      Words state(walk.state);
      for (uint32_t done = 0; done < kTokens; done += batch) {
        const uint32_t count = std::min(batch, kTokens - done);
        Dispatch d;
        d.push.resize(kPushWords);
        for (const Walk::Input& input : walk.inputs) {
          d.push[input.start] = static_cast<uint32_t>(d.buffers[kArena].size());
          d.push[input.stride] = static_cast<uint32_t>(input.rows[0].size());
          for (uint32_t t = done; t < done + count; ++t)
            append(d.buffers[kArena], {input.rows[t].begin(), input.rows[t].end()});
        }
        const auto out_at = static_cast<uint32_t>(d.buffers[kArena].size());
        d.push[kPushOut] = out_at;
        d.push[kPushOutStride] = walk.width;
        d.buffers[kArena].resize(out_at + count * walk.width);
        for (const auto& [word, vector] : walk.vectors) {
          d.push[word] = static_cast<uint32_t>(d.buffers[kVectors].size());
          append(d.buffers[kVectors], vector);
        }
        d.buffers[kCache] = state;
        d.buffers[kStep] = {count, done, 0, 0};
        d.grid = {walk.heads, 1, 1};
        run(walk.name, walk.constants, d);
        if (HasFatalFailure())
          return;
        state = d.buffers[kCache];
        for (uint32_t t = 0; t < count; ++t)
          for (uint32_t i = 0; i < walk.width; ++i) {
            const double value = std::bit_cast<float>(d.buffers[kArena][out_at + t * walk.width + i]);
            error += std::pow(value - want[done + t][i], 2);
            size += std::pow(want[done + t][i], 2);
          }
      }
      EXPECT_LT(std::sqrt(error / size), kTolerance);
    }
  }
};

TEST_F(LinearAttention, ADecayAChannel) {
  struct Case {
    test::KdaShape shape;
    uint32_t rates; ///< as the shader counts what decays there are
  };
  for (const auto& [s, rates] : {Case{{2, 32, 32}, 0}, Case{{3, 18, 7}, 1}, Case{{2, 16, 80}, 2},
                                 Case{{2, 20, 32, true, -5}, 0}, Case{{1, 5, 3, true, -0.5}, 1}}) {
    SCOPED_TRACE(s.keyDim);
    const auto heads = static_cast<uint32_t>(s.heads), key = static_cast<uint32_t>(s.keyDim),
               value = static_cast<uint32_t>(s.valueDim);
    const uint32_t keys = heads * key, values = heads * value, decays = rates == 0 ? heads : rates == 1 ? key : keys;
    const Rows q = random_rows(keys, 1, 1), k = random_rows(keys, 1, 2), v = random_rows(values, 1, 3),
               f = random_rows(keys, 3, 4), b = random_rows(heads, 2, 5), gate = random_rows(values, 3, 6);
    const std::vector<float> decay = random_vector(decays, 1, 7), bias = random_vector(keys, 1, 8),
                             norm = random_vector(value, 1, 9);
    std::vector<float> spread(keys);
    for (uint32_t i = 0; i < keys; ++i)
      spread[i] = decay[rates == 0 ? i / key : rates == 1 ? i % key : i];
    const Walk walk{"kda",
                    {{kSpecLocal, 64},
                     {kSpecHeads, heads},
                     {kSpecHeadDim, key},
                     {kSpecValueDim, value},
                     {kSpecEps, std::bit_cast<uint32_t>(static_cast<float>(s.eps))},
                     {kSpecRates, rates},
                     {kSpecFunction, s.bounded},
                     {kSpecLimit, std::bit_cast<uint32_t>(static_cast<float>(s.bound))}},
                    {{kPushInput, kPushInputStride, q},
                     {kPushAux, kPushInputStride, k},
                     {kPushFades, kPushInputStride, f},
                     {kPushThird, kPushThirdStride, v},
                     {kPushOpening, kPushThirdStride, gate},
                     {kPushBeta, kPushBetaStride, b}},
                    {{kPushVector, decay}, {kPushVector2, bias}, {kPushHeadNorm, norm}},
                    heads,
                    keys * value,
                    values};
    expect(walk, test::kda(s, q, k, v, f, b, gate, spread, bias, norm));
  }
}

TEST_F(LinearAttention, Phases) {
  struct Case {
    test::VmfShape shape;
    bool gate;
  };
  for (const auto& [s, gated] :
       {Case{{2, 8, 32}, false}, Case{{3, 5, 7}, true}, Case{{2, 16, 72, true}, true}, Case{{1, 3, 64, true}, false}}) {
    SCOPED_TRACE(s.phases);
    const auto heads = static_cast<uint32_t>(s.heads), phases = static_cast<uint32_t>(s.phases),
               value = static_cast<uint32_t>(s.valueDim);
    // Angles of many turns.
    const Rows q = random_rows(heads * phases, 50, 1), k = random_rows(heads * phases, 50, 2),
               v = random_rows(heads * value, 1, 3), gate = random_rows(heads, 2, 4);
    const std::vector<float> decay = random_vector(heads * 2 * phases, 2, 5);
    const auto scale = static_cast<float>(s.delta ? 1 / std::sqrt(static_cast<double>(phases)) : 1);
    const Walk walk{"vmf_phase",
                    {{kSpecLocal, 64},
                     {kSpecHeadDim, 2 * phases},
                     {kSpecValueDim, value},
                     {kSpecScale, std::bit_cast<uint32_t>(scale)},
                     {kSpecCorrects, s.delta},
                     {kSpecWeighted, gated}},
                    {{kPushInput, kPushInputStride, q},
                     {kPushAux, kPushInputStride, k},
                     {kPushThird, kPushThirdStride, v},
                     {kPushBeta, kPushBetaStride, gate}},
                    {{kPushVector, decay}},
                    heads,
                    heads * 2 * phases * value,
                    heads * value};
    expect(walk, test::vmf_phase(s, q, k, v, gated ? gate : Rows(), decay));
  }
}

} // namespace
} // namespace cortiq::codegen
