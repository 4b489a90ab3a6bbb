// What shaders leave for the host beside logits: the largest of them, a step's number, the layer that overflowed.

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "formats/artifact/shader_abi.h"
#include "test/unit/spirv/device.h"
#include "test/unit/spirv/numbers.h"

namespace cortiq::codegen {
namespace {

using namespace formats;

class HostWords : public ShaderTest {
protected:
  static constexpr uint32_t kRecords = 8; ///< word where they begin

  void ask(std::vector<float> row, uint32_t shares, uint32_t top, uint32_t limit, float temperature) {
    d = {};
    for (const float x : row)
      d.buffers[kArena].push_back(bits(x));
    d.buffers[kStep] = {1, 0, 0, 1, bits(1 / temperature), limit};
    d.buffers[kResults].assign(kRecords + shares * (4 + 2 * top), 0);
    d.push.resize(kPushWords);
    d.push[kPushAux] = 4;
    d.push[kPushOut] = kRecords;
    d.push[kPushHead] = 1;
    d.grid = {shares, 1, 1};
    run("top_logits", {{kSpecLocal, 64}, {kSpecRows, uint32_t(row.size())}, {kSpecGroups, shares}, {kSpecTop, top}}, d);
  }
  uint32_t word(uint32_t record, uint32_t top, uint32_t at) {
    return d.buffers[kResults][kRecords + record * (4 + 2 * top) + at];
  }
  float value(uint32_t record, uint32_t top, uint32_t at) { return std::bit_cast<float>(word(record, top, at)); }

  Dispatch d;
};

TEST_F(HostWords, LargestLogits) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 3);
  for (const uint32_t count : {5u, 257u, 1500u})
    for (const uint32_t shares : {1u, 6u}) {
      constexpr uint32_t kTop = 4;
      const uint32_t limit = count - count / 10;
      std::vector<float> row(count);
      for (float& x : row)
        x = std::round(normal(random) * 16) / 16;
      ask(row, shares, kTop, limit, 0.7f);
      if (HasFatalFailure())
        return;
      const float largest = *std::max_element(row.begin(), row.begin() + limit);
      double sum = 0, want = 0;
      float rest = -INFINITY, most = -INFINITY;
      std::vector<uint32_t> ids;
      for (uint32_t g = 0; g < shares; ++g) {
        EXPECT_EQ(word(g, kTop, 2), 0u);
        most = std::max(most, value(g, kTop, 0));
        if (std::isfinite(value(g, kTop, 0)))
          sum += value(g, kTop, 1) * std::exp((value(g, kTop, 0) - largest) / 0.7);
        rest = std::max(rest, value(g, kTop, 4 + kTop - 1));
        for (uint32_t i = 0; i < kTop; ++i)
          if (std::isfinite(value(g, kTop, 4 + i))) {
            ids.push_back(word(g, kTop, 4 + kTop + i));
            ASSERT_LT(ids.back(), limit);
            EXPECT_EQ(value(g, kTop, 4 + i), row[ids.back()]);
          }
      }
      EXPECT_EQ(most, largest);
      std::ranges::sort(ids);
      EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
      for (uint32_t id = 0; id < limit; ++id) {
        want += std::exp((double(row[id]) - largest) / 0.7);
        if (row[id] > rest)
          EXPECT_TRUE(std::ranges::binary_search(ids, id)) << id;
      }
      EXPECT_NEAR(sum, want, 1e-5 * want);
    }
}

TEST_F(HostWords, LogitsThatAreNoNumbersAreTold) {
  std::vector<float> row(300, 1.0f);
  row[299] = NAN; // even beyond the limit
  ask(row, 2, 2, 200, 1);
  EXPECT_EQ(word(0, 2, 2) + word(1, 2, 2), 1u);
  row[299] = INFINITY;
  ask(row, 2, 2, 200, 1);
  EXPECT_EQ(word(0, 2, 2) + word(1, 2, 2), 1u);
}

TEST_F(HostWords, StepNumber) {
  d.buffers[kStep] = {1, 0, 0, 0, 0, 77};
  d.buffers[kResults].assign(4, 9);
  d.push.resize(kPushWords);
  d.push[kPushAux] = 5;
  run("finish", {{kSpecLocal, 64}}, d);
  EXPECT_EQ(d.buffers[kResults], (Words{77, 9, 9, 9}));
}

/// Keys of one head beyond what f16 holds.
TEST_F(HostWords, OverflowOfTheCache) {
  constexpr uint32_t kDim = 64;
  for (const float key : {1.0f, 7e4f, -7e4f, float(NAN)})
    for (const uint32_t half : {0u, 1u}) {
      d = {};
      for (uint32_t i = 0; i < 3 * kDim; ++i)
        d.buffers[kArena].push_back(bits(i == kDim + 40 ? key : 0.5f));
      d.buffers[kCache].assign(2 * kDim, 0);
      d.buffers[kStep] = {1, 0, 0, 0, 0};
      d.buffers[kResults].assign(8, 0);
      d.push.resize(kPushWords);
      d.push[kPushLayer] = 6;
      d.push[kPushAux] = kDim;
      d.push[kPushThird] = 2 * kDim;
      d.grid = {3, 1, 1};
      run("rope_kv",
          {{kSpecLocal, 64},
           {kSpecHeads, 1},
           {kSpecKvHeads, 1},
           {kSpecHeadDim, kDim},
           {kSpecValueDim, kDim},
           {kSpecPairs, 0},
           {kSpecCache, half}},
          d);
      const bool fits = key == 1.0f || (half == 0 && std::isfinite(key));
      EXPECT_EQ(d.buffers[kResults][kResultOverflow], fits ? 0u : 6u) << key << " in " << (half ? "f16" : "f32");
    }
}

} // namespace
} // namespace cortiq::codegen
