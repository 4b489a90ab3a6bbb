// Experts: the choice, and products with the chosen ones' matrices.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "formats/artifact/shader_abi.h"
#include "formats/layout/layout.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"
#include "test/unit/spirv/numbers.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // codecs, and the numbers of shader_abi.h

struct RouteCase {
  uint32_t experts, chosen, scoring;
  bool bias, scales, normalize;
  uint32_t groups = 1, groups_used = 1;
};

class Route : public ShaderTest {
protected:
  void check(const RouteCase& c) {
    SCOPED_TRACE(c.scoring);
    constexpr uint32_t kCount = 2;
    const std::vector<float> logits = random_floats(kCount * c.experts, 1), bias = random_floats(c.experts, 2),
                             scales = random_floats(c.experts, 3);
    Dispatch d;
    append(d.buffers[kArena], logits);
    const uint32_t at = kCount * c.experts;
    d.buffers[kArena].resize(at + kCount * 2 * c.chosen);
    append(d.buffers[kVectors], bias);
    append(d.buffers[kVectors], scales);
    d.buffers[kStep] = {kCount, 0, 0, 0};
    d.push = {0, 0, at, 0, 0, c.experts, 2 * c.chosen, 0, 0, 0, 0, 0, c.experts};
    d.grid = {1, 1, kCount};
    run("moe_route",
        {{kSpecLocal, 64},
         {kSpecRouted, c.experts},
         {kSpecExperts, c.chosen},
         {kSpecScoring, c.scoring},
         {kSpecRouteBias, c.bias},
         {kSpecWeighted, c.scales},
         {kSpecNormalize, c.normalize},
         {kSpecNormEpsilon, bits(1e-3f)},
         {kSpecRouteScale, bits(2.5f)},
         {kSpecGroups, c.groups},
         {kSpecGroupsUsed, c.groups_used}},
        d);
    if (HasFatalFailure())
      return;
    for (uint32_t t = 0; t < kCount; ++t) {
      std::vector<double> scores;
      double sum = 0;
      for (uint32_t e = 0; e < c.experts; ++e) {
        const double x = logits[t * c.experts + e];
        const double values[] = {std::exp(x), 1 / (1 + std::exp(-x)), x,
                                 std::sqrt(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))))};
        scores.push_back(values[c.scoring]);
        sum += scores.back();
      }
      std::vector<double> keys;
      for (uint32_t e = 0; e < c.experts; ++e) {
        if (c.scoring == 0)
          scores[e] /= sum;
        keys.push_back(scores[e] + (c.bias ? bias[e] : 0));
      }
      const uint32_t size = c.experts / c.groups;
      std::vector<std::pair<double, uint32_t>> groups;
      for (uint32_t g = 0; g < c.groups; ++g) {
        std::vector<double> of(keys.begin() + g * size, keys.begin() + (g + 1) * size);
        std::sort(of.rbegin(), of.rend());
        groups.push_back({-(of[0] + of[1]), g});
      }
      std::sort(groups.begin(), groups.end());
      for (uint32_t g = c.groups_used; g < c.groups; ++g)
        std::fill_n(keys.begin() + groups[g].second * size, size, -INFINITY);
      std::vector<uint32_t> order(c.experts);
      std::iota(order.begin(), order.end(), 0u);
      std::sort(order.begin(), order.end(),
                [&](uint32_t a, uint32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
      double total = 0;
      std::vector<double> weights;
      for (uint32_t k = 0; k < c.chosen; ++k) {
        weights.push_back(c.scoring == 2 ? std::exp(scores[order[k]]) : scores[order[k]]);
        total += weights.back();
      }
      for (uint32_t k = 0; k < c.chosen; ++k) {
        double weight = weights[k] / (c.scoring == 2 ? total : 1);
        if (c.normalize)
          weight /= (c.scoring == 2 ? 1 : total) + 1e-3;
        weight *= 2.5 * (c.scales ? scales[order[k]] : 1);
        EXPECT_EQ(d.buffers[kArena][at + t * 2 * c.chosen + k], order[k]) << k;
        EXPECT_NEAR(std::bit_cast<float>(d.buffers[kArena][at + (t * 2 + 1) * c.chosen + k]), weight, 1e-5) << k;
      }
    }
  }
};

TEST_F(Route, EveryScoring) {
  check({.experts = 70, .chosen = 4, .scoring = 0, .bias = false, .scales = false, .normalize = true});
  check({.experts = 16,
         .chosen = 3,
         .scoring = 1,
         .bias = true,
         .scales = true,
         .normalize = true,
         .groups = 4,
         .groups_used = 2});
  check({.experts = 12, .chosen = 2, .scoring = 2, .bias = false, .scales = false, .normalize = false});
  check({.experts = 9, .chosen = 2, .scoring = 3, .bias = true, .scales = false, .normalize = false});
}

/// out = residual + sum over the choices of weight * W_e (silu(G_e x) * (U_e x)), each matrix in a stack of its own.
class Experts : public ShaderTest {};

TEST_F(Experts, TwoProductsMakeALayer) {
  constexpr uint32_t kHidden = 64, kInner = 96, kStack = 5, kChosen = 3, kCount = 2;
  const Codec& codec = *find_codec("q4_0");
  const std::vector<uint32_t> ids = {4, 0, 2, 1, 3, 4};
  const std::vector<float> shares = {0.5f, 0.25f, 0.125f, 0.3f, 0.6f, 0.1f};
  const auto stack = [&](uint32_t rows, uint32_t cols, uint32_t seed, uint32_t& units) {
    std::vector<uint8_t> all;
    for (uint32_t e = 0; e < kStack; ++e) {
      std::vector<uint8_t> one(*packed_bytes(codec, LayoutId::kPlanes, rows, cols));
      EXPECT_TRUE(fill_random(codec, LayoutId::kPlanes, rows, cols, seed + e, one).ok());
      one.resize((one.size() + 15) / 16 * 16);
      units = static_cast<uint32_t>(one.size() / 16);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  };
  const auto times = [&](const std::vector<uint8_t>& all, uint32_t units, uint32_t e, uint32_t rows, uint32_t cols,
                         const std::vector<double>& x) {
    std::vector<double> y(rows);
    std::vector<float> w(cols);
    for (uint32_t r = 0; r < rows; ++r) {
      EXPECT_TRUE(decode_packed_row(codec, LayoutId::kPlanes, std::span(all).subspan(size_t{e} * units * 16), rows,
                                    cols, r, w.data())
                      .ok());
      for (uint32_t i = 0; i < cols; ++i)
        y[r] += w[i] * x[i];
    }
    return y;
  };
  uint32_t gate_units = 0, down_units = 0;
  const std::vector<uint8_t> gate = stack(kInner, kHidden, 10, gate_units), up = stack(kInner, kHidden, 20, gate_units),
                             down = stack(kHidden, kInner, 30, down_units);
  const std::vector<float> bias = random_floats(kStack * kHidden, 40);

  Dispatch d;
  std::vector<std::vector<float>> xs;
  for (uint32_t t = 0; t < kCount; ++t) {
    xs.push_back(random_floats(kHidden, t + 1));
    append(d.buffers[kArena], in_lane_order(xs[t]));
  }
  const uint32_t routes_at = kCount * 1024;
  for (uint32_t t = 0; t < kCount; ++t) {
    for (uint32_t k = 0; k < kChosen; ++k)
      d.buffers[kArena].push_back(ids[t * kChosen + k]);
    append(d.buffers[kArena], {shares.begin() + t * kChosen, shares.begin() + (t + 1) * kChosen});
  }
  const uint32_t pairs_at = routes_at + 4 * kChosen, out_at = pairs_at + kCount * kChosen * 1024;
  d.buffers[kArena].resize(out_at + kCount * kHidden);
  d.buffers[kStep] = {kCount, 0, 0, 0};
  append(d.buffers[kVectors], bias);
  std::vector<uint8_t> both = gate;
  both.insert(both.end(), up.begin(), up.end());
  d.buffers[kWeights] = words_of(both);
  d.push = {0, 0, pairs_at, 0, 0, 1024, 1024, 0, 0, 0, 0, routes_at, 0, static_cast<uint32_t>(gate.size() / 16), 0, 0};
  d.grid = {kInner / 2, 1, kCount * kChosen};
  run("matmul_q4_0",
      {{kSpecLocal, 64},
       {kSpecRows, kInner},
       {kSpecCols, kHidden},
       {kSpecOutOrder, 1},
       {kSpecPair, 1},
       {kSpecExperts, kChosen},
       {kSpecExpertUnits, gate_units}},
      d);
  if (HasFatalFailure())
    return;
  d.buffers[kWeights] = words_of(down);
  d.push = {0, pairs_at, out_at, 0, 0, 1024, kHidden, 1024, 0, 0, 0, routes_at, 0, 0, 0, 0};
  d.grid = {kHidden / 2, 1, kCount};
  run("matmul_q4_0",
      {{kSpecLocal, 64},
       {kSpecRows, kHidden},
       {kSpecCols, kInner},
       {kSpecBias, 1},
       {kSpecSum, 1},
       {kSpecExperts, kChosen},
       {kSpecExpertUnits, down_units}},
      d);
  if (HasFatalFailure())
    return;
  for (uint32_t t = 0; t < kCount; ++t) {
    std::vector<double> want(kHidden);
    for (uint32_t k = 0; k < kChosen; ++k) {
      const uint32_t e = ids[t * kChosen + k];
      const std::vector<double> x(xs[t].begin(), xs[t].end());
      std::vector<double> g = times(gate, gate_units, e, kInner, kHidden, x);
      const std::vector<double> u = times(up, gate_units, e, kInner, kHidden, x);
      for (uint32_t i = 0; i < kInner; ++i)
        g[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
      const std::vector<double> y = times(down, down_units, e, kHidden, kInner, g);
      for (uint32_t i = 0; i < kHidden; ++i)
        want[i] += shares[t * kChosen + k] * (y[i] + bias[e * kHidden + i]);
    }
    for (uint32_t i = 0; i < kHidden; ++i)
      EXPECT_NEAR(std::bit_cast<float>(d.buffers[kArena][out_at + t * kHidden + i]), want[i], 1e-5) << t << " " << i;
  }
}

TEST_F(Experts, TilesOfThePlanGiveTheBitsOfSinglePairs) {
  constexpr uint32_t kHidden = 96, kInner = 40, kStack = 4, kChosen = 2, kCount = 7, kTile = 4, kHeadFirst = 1;
  const Codec& codec = *find_codec("q8_0");
  uint32_t units = 0;
  std::vector<uint8_t> both;
  for (uint32_t e = 0; e < 2 * kStack; ++e) {
    std::vector<uint8_t> one(*packed_bytes(codec, LayoutId::kPlanes, kInner, kHidden));
    ASSERT_TRUE(fill_random(codec, LayoutId::kPlanes, kInner, kHidden, e + 1, one).ok());
    one.resize((one.size() + 15) / 16 * 16);
    units = static_cast<uint32_t>(one.size() / 16);
    both.insert(both.end(), one.begin(), one.end());
  }
  // Expert 3 has more pairs than a tile, expert 1 none.
  const std::vector<uint32_t> ids = {0, 3, 3, 2, 0, 3, 3, 0, 2, 3, 3, 0, 2, 3};
  Dispatch d;
  for (uint32_t t = 0; t < kCount; ++t)
    append(d.buffers[kArena], in_lane_order(random_floats(kHidden, t + 1)));
  const uint32_t routes_at = kCount * 1024;
  for (uint32_t t = 0; t < kCount; ++t) {
    d.buffers[kArena].insert(d.buffers[kArena].end(), ids.begin() + t * kChosen, ids.begin() + (t + 1) * kChosen);
    d.buffers[kArena].insert(d.buffers[kArena].end(), kChosen, bits(0.5f));
  }
  const uint32_t plan_at = routes_at + kCount * 2 * kChosen, single_at = plan_at + 256,
                 tiled_at = single_at + kCount * kChosen * kInner;
  d.buffers[kArena].resize(tiled_at + kCount * kChosen * kInner, bits(-77.0f));
  // The head has all tokens but the first.
  d.buffers[kStep] = {kCount, 0, kHeadFirst, kCount - kHeadFirst};
  d.buffers[kWeights] = words_of(both);
  d.push = {0, routes_at, plan_at, 0, 0, 2 * kChosen, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  d.grid = {1, 1, 1};
  run("moe_plan", {{kSpecLocal, 64}, {kSpecRouted, kStack}, {kSpecExperts, kChosen}, {kSpecTokens, kTile}}, d);
  if (HasFatalFailure())
    return;
  const uint32_t pairs = (kCount - kHeadFirst) * kChosen, tiles = d.buffers[kArena][plan_at];
  EXPECT_EQ(tiles, 4u); // 6 pairs of expert 3, 3 each of two others
  const std::vector<std::pair<uint32_t, uint32_t>> shape = {{kSpecLocal, 64},        {kSpecRows, kInner},
                                                            {kSpecCols, kHidden},    {kSpecPair, 1},
                                                            {kSpecExperts, kChosen}, {kSpecExpertUnits, units}};
  d.push = {0, 0, single_at, 0, 0, 1024, kInner, 0, 0, 0, 0, routes_at, 0, kStack * units, 0, 1};
  d.grid = {kInner / 2, 1, pairs};
  run("matmul_q8_0", shape, d);
  if (HasFatalFailure())
    return;
  auto planned = shape;
  planned.insert(planned.end(), {{kSpecTokens, kTile}, {kSpecPlan, 1}});
  d.push[2] = tiled_at;
  d.push[11] = plan_at;
  d.grid = {kInner / 2, 1, pairs / kTile + kStack}; // more than there are
  run("matmul_q8_0", planned, d);
  if (HasFatalFailure())
    return;
  for (uint32_t p = kHeadFirst * kChosen; p < kCount * kChosen; ++p)
    for (uint32_t i = 0; i < kInner; ++i)
      ASSERT_EQ(d.buffers[kArena][tiled_at + p * kInner + i], d.buffers[kArena][single_at + p * kInner + i])
          << p << " " << i;
  EXPECT_EQ(d.buffers[kArena][tiled_at], bits(-77.0f));
}

} // namespace
} // namespace cortiq::codegen
