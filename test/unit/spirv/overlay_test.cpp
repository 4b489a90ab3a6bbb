// What masks and skills need of a device: rows that are cut, experts that are closed, sums of residual rows, and
// experts that are not all alike.

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

class Overlay : public ShaderTest {};

TEST_F(Overlay, CutsColumnsInBothOrders) {
  constexpr uint32_t kCount = 101, kTokens = 3, kMaskAt = 5;
  const std::vector<float> x = random_floats(kCount * kTokens, 1);
  Words mask = {0x9a5f00ff, 0, 0xffffffff, 0x5};
  for (const bool lanes : {false, true}) {
    SCOPED_TRACE(lanes);
    const uint32_t stride = lanes ? lane_floats(kCount) : 104;
    Dispatch d;
    d.buffers[kArena].assign(stride * kTokens, bits(-77.0f));
    const auto place = [&](uint32_t t, uint32_t i) { return t * stride + (lanes ? lane_place(i) : i); };
    for (uint32_t t = 0; t < kTokens; ++t)
      for (uint32_t i = 0; i < kCount; ++i)
        d.buffers[kArena][place(t, i)] = i == 7 ? 0x7fc00000u : bits(x[t * kCount + i]); // what is cut may be no number
    d.buffers[kVectors].assign(kMaskAt, 0);
    d.buffers[kVectors].insert(d.buffers[kVectors].end(), mask.begin(), mask.end());
    d.buffers[kStep] = {kTokens - 1, 0, 0, 0};
    d.push = {0, 0, 0, 0, 0, 0, stride, 0, 0, 0, 0, kMaskAt};
    d.grid = {(kCount + 63) / 64, 1, kTokens};
    run("cut", {{kSpecLocal, 64}, {kSpecRows, kCount}, {kSpecOutOrder, lanes}}, d);
    if (HasFatalFailure())
      return;
    for (uint32_t t = 0; t < kTokens; ++t)
      for (uint32_t i = 0; i < kCount; ++i) {
        const bool kept = t + 1 == kTokens || (mask[i / 32] >> i % 32 & 1) != 0; // the last token is beyond the step
        const uint32_t was = i == 7 ? 0x7fc00000u : bits(x[t * kCount + i]);
        ASSERT_EQ(d.buffers[kArena][place(t, i)], kept ? was : 0u) << t << " " << i;
      }
  }
}

TEST_F(Overlay, SumsOfRowsKeepWhatRoundingTakes) {
  constexpr uint32_t kCount = 70, kTokens = 400, kAt = 9;
  std::vector<float> x = random_floats(kCount * kTokens, 2);
  for (uint32_t t = 0; t < kTokens; ++t)
    x[t * kCount] *= t % 2 ? 1e8f : 1.0f;
  Dispatch d;
  append(d.buffers[kArena], x);
  d.buffers[kResults].assign(kAt + 2 * kCount, 0);
  d.buffers[kStep] = {kTokens, 0, 0, 0};
  d.push = {0, 0, kAt, 0, 0, kCount};
  d.grid = {2, 1, 1};
  run("tap", {{kSpecLocal, 64}, {kSpecRows, kCount}}, d);
  if (HasFatalFailure())
    return;
  for (uint32_t i = 0; i < kCount; ++i) {
    double want = 0, size = 0;
    for (uint32_t t = 0; t < kTokens; ++t) {
      want += x[t * kCount + i];
      size += std::fabs(x[t * kCount + i]);
    }
    const double got = double{std::bit_cast<float>(d.buffers[kResults][kAt + i])} +
                       std::bit_cast<float>(d.buffers[kResults][kAt + kCount + i]);
    EXPECT_NEAR(got, want, 1e-11 * size) << i;
  }
}

TEST_F(Overlay, ClosedExpertsAreChosenLastAndWeighNothing) {
  constexpr uint32_t kExperts = 6, kChosen = 3, kTokens = 2;
  const std::vector<float> logits = {3, 2, 1, 0.5f, -1, -2, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f};
  const std::vector<float> bias = {0, 0, 9, 0, 0, 0};
  const auto choose = [&](uint32_t mask, uint32_t scoring, bool biased) {
    Dispatch d;
    append(d.buffers[kArena], logits);
    d.buffers[kArena].resize(logits.size() + kTokens * 2 * kChosen);
    append(d.buffers[kVectors], bias);
    d.buffers[kVectors].push_back(mask);
    d.buffers[kStep] = {kTokens, 0, 0, 0};
    d.push = {0, 0, kTokens * kExperts, 0, 0, kExperts, 2 * kChosen, 0, 0, 0, 0, kExperts};
    d.grid = {1, 1, kTokens};
    run("moe_route",
        {{kSpecLocal, 64},
         {kSpecRouted, kExperts},
         {kSpecExperts, kChosen},
         {kSpecScoring, scoring},
         {kSpecRouteBias, biased},
         {kSpecNormalize, scoring != 2},
         {kSpecMasked, 1}},
        d);
    return Words(d.buffers[kArena].begin() + kTokens * kExperts, d.buffers[kArena].end());
  };
  for (const uint32_t scoring : {0u, 1u, 2u, 3u})
    for (const bool biased : {false, true}) {
      SCOPED_TRACE(scoring * 2 + biased);
      // Two are open: the third choice is the first of the others, and counts for nothing.
      const Words two = choose(0b010010, scoring, biased);
      if (HasFatalFailure())
        return;
      EXPECT_EQ(Words(two.begin(), two.begin() + 3), (Words{1, 4, 0}));
      EXPECT_EQ(Words(two.begin() + 6, two.begin() + 9), (Words{4, 1, 0}));
      const std::vector<float> weights = floats(two);
      EXPECT_NEAR(weights[3] + weights[4], 1, 1e-6);
      EXPECT_GT(weights[3], weights[4]);
      EXPECT_EQ(weights[5], 0);
      const Words none = choose(0, scoring, biased);
      EXPECT_EQ(Words(none.begin(), none.begin() + 6), (Words{0, 1, 2, 0, 0, 0}));
    }
}

// Experts of two shapes and codecs: a dispatch for each makes the rows of its own pairs and leaves the others alone.
TEST_F(Overlay, ExpertsThatAreNotAlikeTakeADispatchEach) {
  constexpr uint32_t kHidden = 64, kStack = 5, kChosen = 2, kTokens = 6, kTile = 4, kStride = 64;
  struct Kind {
    const char* codec;
    uint32_t rows;
    std::vector<uint32_t> experts;
  };
  const std::vector<Kind> kinds = {{"q8_0", 40, {1, 4}}, {"q4_0", 56, {0, 2, 3}}};
  const std::vector<uint32_t> ids = {0, 1, 4, 2, 1, 3, 3, 4, 1, 0, 2, 4};
  std::vector<std::vector<float>> xs;
  Dispatch d;
  for (uint32_t t = 0; t < kTokens; ++t) {
    xs.push_back(random_floats(kHidden, t + 1));
    append(d.buffers[kArena], in_lane_order(xs[t]));
  }
  const uint32_t routes_at = kTokens * 1024;
  for (uint32_t t = 0; t < kTokens; ++t) {
    d.buffers[kArena].insert(d.buffers[kArena].end(), ids.begin() + t * kChosen, ids.begin() + (t + 1) * kChosen);
    d.buffers[kArena].insert(d.buffers[kArena].end(), kChosen, bits(0.5f));
  }
  const uint32_t plan_at = routes_at + kTokens * 2 * kChosen, sum_at = plan_at + 256,
                 out_at = sum_at + kTokens * kChosen * kStride;
  d.buffers[kArena].resize(sum_at);
  const std::vector<float> sums = random_floats(kTokens * kChosen * kStride, 50);
  append(d.buffers[kArena], sums);
  d.buffers[kArena].resize(out_at + kTokens * kChosen * kStride, bits(-77.0f));
  d.buffers[kStep] = {kTokens, 0, 0, 0};
  d.push = {0, routes_at, plan_at, 0, 0, 2 * kChosen};
  d.grid = {1, 1, 1};
  run("moe_plan", {{kSpecLocal, 64}, {kSpecRouted, kStack}, {kSpecExperts, kChosen}, {kSpecTokens, kTile}}, d);
  std::vector<std::vector<float>> want(kTokens * kChosen);
  for (const Kind& kind : kinds) {
    const Codec& codec = *find_codec(kind.codec);
    uint32_t units = 0;
    std::vector<uint8_t> stack;
    Words numbers(kStack, UINT32_MAX);
    for (uint32_t i = 0; i < kind.experts.size(); ++i) {
      numbers[kind.experts[i]] = i;
      std::vector<uint8_t> one(*packed_bytes(codec, LayoutId::kPlanes, kind.rows, kHidden));
      ASSERT_TRUE(fill_random(codec, LayoutId::kPlanes, kind.rows, kHidden, kind.experts[i] + 1, one).ok());
      for (uint32_t p = 0; p < ids.size(); ++p)
        for (uint32_t r = 0; ids[p] == kind.experts[i] && r < kind.rows; ++r) {
          std::vector<float> w(kHidden);
          ASSERT_TRUE(decode_packed_row(codec, LayoutId::kPlanes, one, kind.rows, kHidden, r, w.data()).ok());
          const std::vector<float>& x = xs[p / kChosen];
          want[p].push_back(
              static_cast<float>(std::inner_product(w.begin(), w.end(), x.begin(), double{sums[p * kStride + r]})));
        }
      one.resize((one.size() + 15) / 16 * 16);
      units = static_cast<uint32_t>(one.size() / 16);
      stack.insert(stack.end(), one.begin(), one.end());
    }
    d.buffers[kWeights] = words_of(stack);
    d.buffers[kVectors] = numbers;
    d.push = {0, 0, out_at, 0, sum_at, 1024, kStride, kStride, 0, 0, 0, plan_at, 0};
    d.grid = {kind.rows / 2, 1, kTokens * kChosen / kTile + kStack}; // more than there are
    run(std::string("matmul_") + kind.codec,
        {{kSpecLocal, 64},
         {kSpecRows, kind.rows},
         {kSpecCols, kHidden},
         {kSpecExperts, kChosen},
         {kSpecExpertUnits, units},
         {kSpecTokens, kTile},
         {kSpecPlan, 1},
         {kSpecClassed, 1},
         {kSpecResidual, 1}},
        d);
    if (HasFatalFailure())
      return;
  }
  for (uint32_t p = 0; p < ids.size(); ++p)
    for (uint32_t r = 0; r < kStride; ++r) {
      const float got = std::bit_cast<float>(d.buffers[kArena][out_at + p * kStride + r]);
      if (r < want[p].size())
        ASSERT_NEAR(got, want[p][r], 1e-4) << p << " " << r;
      else
        ASSERT_EQ(got, -77.0f) << p << " " << r;
    }
}

TEST_F(Overlay, GatedUnitsOfPairs) {
  constexpr uint32_t kCount = 45, kChosen = 3, kTokens = 2;
  const std::vector<float> x = random_floats(2 * kChosen * kTokens * kCount, 3);
  Dispatch d;
  append(d.buffers[kArena], x);
  const uint32_t half = kChosen * kTokens * kCount, out_at = (2 * half + 3) / 4 * 4;
  d.buffers[kArena].resize(out_at + 1024 * kChosen * kTokens);
  d.buffers[kStep] = {kTokens, 0, 0, 0};
  d.push = {0, 0, out_at, 0, half, kCount, 1024, kCount};
  d.grid = {1, 1, kChosen * kTokens};
  run("glu", {{kSpecLocal, 64}, {kSpecRows, kCount}, {kSpecOutOrder, 1}, {kSpecExperts, kChosen}}, d);
  if (HasFatalFailure())
    return;
  for (uint32_t p = 0; p < kChosen * kTokens; ++p)
    for (uint32_t i = 0; i < kCount; ++i) {
      const double g = x[p * kCount + i], u = x[half + p * kCount + i];
      EXPECT_NEAR(std::bit_cast<float>(d.buffers[kArena][out_at + 1024 * p + lane_place(i)]),
                  g / (1 + std::exp(-g)) * u, 1e-5);
    }
}

} // namespace
} // namespace cortiq::codegen
