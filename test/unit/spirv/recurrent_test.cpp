// Operations with a state that steps leave to each other, against the same arithmetic in doubles.

#include <cmath>

#include "formats/artifact/shader_abi.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"
#include "test/unit/spirv/numbers.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // the numbers of shader_abi.h

class Recurrent : public ShaderTest {};

TEST_F(Recurrent, Convolutions) {
  constexpr uint32_t kChannels = 70, kTaps = 4, kSteps = 3, kBatch = 2;
  for (const bool gated : {false, true}) {
    SCOPED_TRACE(gated);
    const uint32_t width = gated ? 3 * kChannels : kChannels;
    const std::vector<float> x = random_floats(kSteps * kBatch * width, 1), w = random_floats(kChannels * kTaps, 2);
    Words state((kTaps - 1) * kChannels);
    for (uint32_t step = 0; step < kSteps; ++step) {
      Dispatch d;
      append(d.buffers[kArena], {x.begin() + step * kBatch * width, x.begin() + (step + 1) * kBatch * width});
      const uint32_t out_at = kBatch * width;
      d.buffers[kArena].resize(out_at + kBatch * kChannels);
      append(d.buffers[kVectors], w);
      d.buffers[kCache] = state;
      d.buffers[kStep] = {kBatch, step * kBatch, 0, 0};
      d.push = {0, 0, out_at, 0, 0, width, kChannels};
      d.grid = {(kChannels + 63) / 64, 1, 1};
      run("causal_conv",
          {{kSpecLocal, 64}, {kSpecRows, kChannels}, {kSpecTaps, kTaps}, {kSpecPair, gated}, {kSpecFunction, !gated}},
          d);
      if (HasFatalFailure())
        return;
      state = d.buffers[kCache];
      for (uint32_t t = 0; t < kBatch; ++t)
        for (uint32_t c = 0; c < kChannels; ++c) {
          const uint32_t at = step * kBatch + t;
          double sum = 0;
          for (uint32_t j = 0; j < kTaps; ++j)
            if (at + j + 1 >= kTaps) {
              const float* row = &x[(at + j + 1 - kTaps) * width];
              sum += w[c * kTaps + j] * (gated ? double{row[c]} * row[2 * kChannels + c] : row[c]);
            }
          sum = gated ? sum * x[at * width + kChannels + c] : sum * logistic(sum);
          EXPECT_NEAR(std::bit_cast<float>(d.buffers[kArena][out_at + t * kChannels + c]), sum, 1e-5) << at << " " << c;
        }
    }
  }
}

TEST_F(Recurrent, GatedDelta) {
  constexpr uint32_t kHeads = 4, kKeyHeads = 2, kKey = 24, kValue = 40, kSteps = 3, kBatch = 3;
  constexpr uint32_t kQkv = 2 * kKeyHeads * kKey + kHeads * kValue, kOut = kHeads * kValue,
                     kWidth = kQkv + kOut + 2 * kHeads;
  const std::vector<float> x = random_floats(kSteps * kBatch * kWidth, 1), decay = random_floats(kHeads, 2),
                           bias = random_floats(kHeads, 3), norm = random_floats(kValue, 4);
  for (const bool tiled : {false, true}) {
    SCOPED_TRACE(tiled);
    Words state(kHeads * kKey * kValue);
    std::vector<double> s(kHeads * kKey * kValue);
    for (uint32_t step = 0; step < kSteps; ++step) {
      Dispatch d;
      append(d.buffers[kArena], {x.begin() + step * kBatch * kWidth, x.begin() + (step + 1) * kBatch * kWidth});
      const uint32_t out_at = kBatch * kWidth;
      d.buffers[kArena].resize(out_at + kBatch * kOut);
      append(d.buffers[kVectors], decay);
      append(d.buffers[kVectors], bias);
      append(d.buffers[kVectors], norm);
      d.buffers[kCache] = state;
      d.buffers[kStep] = {kBatch, step * kBatch, 0, 0};
      d.push = {0,      0,      out_at,    0, kQkv, kWidth, kOut, kWidth, kQkv + kOut, kWidth, kQkv + kOut + kHeads,
                kWidth, kHeads, 2 * kHeads};
      d.grid = {kHeads, 1, 1};
      run("gated_delta",
          {{kSpecLocal, 32},
           {kSpecHeads, kHeads},
           {kSpecKvHeads, kKeyHeads},
           {kSpecHeadDim, kKey},
           {kSpecValueDim, kValue},
           {kSpecTiled, tiled},
           {kSpecSigmoidGate, tiled}},
          d);
      if (HasFatalFailure())
        return;
      state = d.buffers[kCache];
      for (uint32_t t = 0; t < kBatch; ++t)
        for (uint32_t h = 0; h < kHeads; ++h) {
          const float* row = &x[(step * kBatch + t) * kWidth];
          const uint32_t key_head = tiled ? h % kKeyHeads : h / (kHeads / kKeyHeads);
          const float *q = row + key_head * kKey, *k = row + (kKeyHeads + key_head) * kKey,
                      *v = row + 2 * kKeyHeads * kKey + h * kValue, *z = row + kQkv + h * kValue;
          double q_squares = 1e-6, k_squares = 1e-6;
          for (uint32_t i = 0; i < kKey; ++i) {
            q_squares += double{q[i]} * q[i];
            k_squares += double{k[i]} * k[i];
          }
          const double fade =
              std::exp(-std::exp(decay[h]) * std::log1p(std::exp(double{row[kQkv + kOut + h]} + bias[h])));
          const double beta = logistic(row[kQkv + kOut + kHeads + h]);
          std::vector<double> out(kValue);
          double squares = 0;
          for (uint32_t j = 0; j < kValue; ++j) {
            double known = 0;
            for (uint32_t i = 0; i < kKey; ++i) {
              double& cell = s[(h * kKey + i) * kValue + j];
              cell *= fade;
              known += cell * k[i] / std::sqrt(k_squares);
            }
            for (uint32_t i = 0; i < kKey; ++i) {
              double& cell = s[(h * kKey + i) * kValue + j];
              cell += k[i] / std::sqrt(k_squares) * beta * (v[j] - known);
              out[j] += cell * q[i] / std::sqrt(q_squares * kKey);
            }
            squares += out[j] * out[j];
          }
          for (uint32_t j = 0; j < kValue; ++j) {
            const double want =
                out[j] / std::sqrt(squares / kValue + 1e-6) * norm[j] * (tiled ? 1 : z[j]) * logistic(z[j]);
            EXPECT_NEAR(std::bit_cast<float>(d.buffers[kArena][out_at + t * kOut + h * kValue + j]), want,
                        2e-5 * std::max(1.0, std::fabs(want)))
                << step << " " << t << " " << h << " " << j;
          }
        }
    }
  }
}

} // namespace
} // namespace cortiq::codegen
