// Attention with windows of head groups and with anchors against the same in doubles, and the queries that rope_kv
// keeps.

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/artifact/shader_abi.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"
#include "test/unit/spirv/expect_q8.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // the numbers of shader_abi.h

struct Shape {
  uint32_t heads, kv_heads, dim, v_dim, positions, tokens, anchors;
  std::vector<uint32_t> windows;
  float cap;
  bool sinks, quantized;
};

class Anchored : public ShaderTest {
protected:
  static constexpr float kScale = 0.3f;

  void check(const Shape& s) {
    const uint32_t q_row = s.heads * s.dim, out_row = s.heads * s.v_dim, cache_row = s.kv_heads * (s.dim + s.v_dim);
    const std::vector<float> q = random_floats(s.tokens * q_row, 1), still = random_floats(s.tokens * q_row, 2),
                             cache = random_floats(s.positions * cache_row, 3), sinks = random_floats(s.heads, 4),
                             keys = random_floats(s.kv_heads * s.anchors * s.dim, 5),
                             values = random_floats(s.kv_heads * s.anchors * s.v_dim, 6);
    Dispatch d;
    const auto add = [&](Binding buffer, const std::vector<float>& x) {
      const auto start = static_cast<uint32_t>(d.buffers[buffer].size());
      append(d.buffers[buffer], x);
      return start;
    };
    d.push.resize(kPushWords);
    d.push[kPushInput] = add(kArena, q);
    d.push[kPushAux] = add(kArena, still);
    d.push[kPushInputStride] = d.push[kPushAuxStride] = q_row;
    const auto out_at = static_cast<uint32_t>(d.buffers[kArena].size());
    const uint32_t stride = s.quantized ? q8_words(out_row) : out_row;
    d.push[kPushOut] = out_at;
    d.push[kPushOutStride] = stride;
    d.buffers[kArena].resize(out_at + s.tokens * stride);
    d.push[kPushVector] = add(kVectors, sinks);
    d.push[kPushAnchorKeys] = add(kVectors, keys);
    d.push[kPushAnchorValues] = add(kVectors, values);
    d.push[kPushWindows] = static_cast<uint32_t>(d.buffers[kVectors].size());
    d.buffers[kVectors].insert(d.buffers[kVectors].end(), s.windows.begin(), s.windows.end());
    append(d.buffers[kCache], cache);
    d.buffers[kStep] = {s.tokens, s.positions - s.tokens, 0, 0};
    d.grid = {s.heads, 1, s.tokens};
    run("attention_anchored",
        {{kSpecLocal, 64},
         {kSpecScale, std::bit_cast<uint32_t>(kScale)},
         {kSpecHeads, s.heads},
         {kSpecKvHeads, s.kv_heads},
         {kSpecHeadDim, s.dim},
         {kSpecValueDim, s.v_dim},
         {kSpecSoftcap, std::bit_cast<uint32_t>(s.cap)},
         {kSpecSinks, s.sinks},
         {kSpecAnchors, s.anchors},
         {kSpecWindows, !s.windows.empty()},
         {kSpecQuantOut, s.quantized}},
        d);
    if (HasFatalFailure())
      return;
    for (uint32_t t = 0; t < s.tokens; ++t) {
      std::vector<float> want;
      for (uint32_t h = 0; h < s.heads; ++h) {
        const uint32_t kv_head = h / (s.heads / s.kv_heads), end = s.positions - s.tokens + t + 1;
        double total = s.sinks ? std::exp(double{sinks[h]}) : 0;
        std::vector<double> sums(s.v_dim);
        const auto see = [&](const float* query, const float* key, const float* value, bool capped) {
          double score = 0;
          for (uint32_t i = 0; i < s.dim; ++i)
            score += double{kScale} * query[i] * key[i];
          const double weight = std::exp(capped && s.cap > 0 ? s.cap * std::tanh(score / s.cap) : score);
          total += weight;
          for (uint32_t i = 0; i < s.v_dim; ++i)
            sums[i] += weight * value[i];
        };
        for (uint32_t p = s.windows.empty() ? 0 : end - std::min(end, s.windows[kv_head]); p < end; ++p)
          see(&q[t * q_row + h * s.dim], &cache[p * cache_row + kv_head * s.dim],
              &cache[p * cache_row + s.kv_heads * s.dim + kv_head * s.v_dim], true);
        for (uint32_t a = kv_head * s.anchors; a < (kv_head + 1) * s.anchors; ++a)
          see(&still[t * q_row + h * s.dim], &keys[a * s.dim], &values[a * s.v_dim], false);
        for (const double sum : sums)
          want.push_back(static_cast<float>(sum / total));
      }
      const std::span<const uint32_t> row = std::span(d.buffers[kArena]).subspan(out_at + t * stride, stride);
      if (s.quantized)
        expect_q8(row, want, 1e-5f);
      for (uint32_t i = 0; !s.quantized && i < out_row; ++i)
        EXPECT_NEAR(std::bit_cast<float>(row[i]), want[i], 5e-6) << t << " " << i;
    }
  }
};

TEST_F(Anchored, AnchorsBesideManyPositions) {
  check({4, 2, 16, 10, 150, 3, 70, {}, 1.5f, false, false});
}
TEST_F(Anchored, WindowsOfHeadGroups) {
  check({4, 2, 24, 80, 90, 4, 0, {3, 71}, 0, true, false});
}
TEST_F(Anchored, BothInEightBits) {
  check({2, 2, 32, 32, 40, 2, 5, {40, 7}, 0, true, true});
}

TEST_F(Anchored, QueriesAreKeptAsTheyWere) {
  constexpr uint32_t kHeads = 3, kDim = 10, kTokens = 2, kRow = kHeads * kDim;
  const std::vector<float> x = random_floats(3 * kTokens * kRow, 1), norm = random_floats(kDim, 2);
  Dispatch d;
  append(d.buffers[kArena], x);
  const auto out_at = static_cast<uint32_t>(x.size());
  d.buffers[kArena].resize(out_at + kTokens * kRow);
  append(d.buffers[kVectors], norm);
  d.buffers[kCache] = Words(kTokens * 2 * kRow);
  d.buffers[kStep] = {kTokens, 0, 0, 0};
  d.push.resize(kPushWords);
  d.push[kPushAux] = kTokens * kRow;
  d.push[kPushThird] = 2 * kTokens * kRow;
  d.push[kPushInputStride] = d.push[kPushAuxStride] = d.push[kPushThirdStride] = d.push[kPushOutStride] = kRow;
  d.push[kPushOut] = out_at;
  d.grid = {3 * kHeads, 1, kTokens};
  run("rope_kv",
      {{kSpecLocal, 32},
       {kSpecHeads, kHeads},
       {kSpecKvHeads, kHeads},
       {kSpecHeadDim, kDim},
       {kSpecValueDim, kDim},
       {kSpecNormFlags, kNormQ},
       {kSpecStill, 1}},
      d);
  if (HasFatalFailure())
    return;
  const std::vector<float> arena = floats(d.buffers[kArena]);
  const std::vector<float> queries(x.begin(), x.begin() + kTokens * kRow);
  EXPECT_EQ(std::vector<float>(arena.begin() + out_at, arena.end()), queries);
  EXPECT_NE(std::vector<float>(arena.begin(), arena.begin() + kTokens * kRow), queries);
}

} // namespace
} // namespace cortiq::codegen
