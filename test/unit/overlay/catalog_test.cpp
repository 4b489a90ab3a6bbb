#include "formats/overlay/catalog.h"

#include <gtest/gtest.h>

namespace cortiq::formats {
namespace {

OverlayMask two_layers() {
  OverlayMask mask;
  mask.layers = 2;
  mask.ffn_rows = 4; // two passes
  mask.ffn_width = 10;
  mask.heads = 3;
  mask.expert_count = 9;
  mask.ffn = {0xff, 0x03, 0xfe, 0x01, 0xff, 0x03, 0x00, 0x00};
  mask.head = {0x07, 0x05};
  mask.gates = {0x01};
  mask.experts = {0xff, 0x01, 0x7f, 0x00};
  return mask;
}

TEST(OverlayMask, BitsAreLowestFirstInRowsOfWholeBytes) {
  const OverlayMask mask = two_layers();
  EXPECT_TRUE(mask.neuron(0, 0));
  EXPECT_TRUE(mask.neuron(0, 9));
  EXPECT_FALSE(mask.neuron(1, 0));
  EXPECT_TRUE(mask.neuron(1, 8));
  EXPECT_FALSE(mask.neuron(1, 9));
  EXPECT_TRUE(mask.query_head(0, 1));
  EXPECT_FALSE(mask.query_head(1, 1));
  EXPECT_TRUE(mask.expert(0, 8));
  EXPECT_FALSE(mask.expert(1, 7));
  EXPECT_FALSE(mask.expert(1, 8));
}

TEST(OverlayMask, BeyondItsSizesEverythingIsActive) {
  const OverlayMask mask = two_layers();
  EXPECT_TRUE(mask.neuron(1, 10));
  EXPECT_TRUE(mask.query_head(1, 3));
  EXPECT_TRUE(mask.expert(1, 9));
  EXPECT_TRUE(OverlayMask().neuron(5, 5));
  EXPECT_TRUE(OverlayMask().gate(5));
  OverlayMask short_rows = two_layers();
  short_rows.ffn.resize(2);
  EXPECT_TRUE(short_rows.neuron(1, 0));
}

// A looped model: neurons have a row a pass, gates repeat, heads and experts are masked in the first pass.
TEST(OverlayMask, LaterPasses) {
  const OverlayMask mask = two_layers();
  EXPECT_FALSE(mask.neuron(3, 0));
  EXPECT_TRUE(mask.neuron(2, 0));
  EXPECT_TRUE(mask.gate(2));
  EXPECT_FALSE(mask.gate(3));
  EXPECT_TRUE(mask.query_head(3, 1));
  EXPECT_TRUE(mask.expert(3, 7));
}

TEST(OverlayCatalog, TheFirstFallbackAppliesElseTheFirst) {
  OverlayCatalog catalog;
  EXPECT_EQ(catalog.default_mask(), std::nullopt);
  catalog.masks.resize(3);
  EXPECT_EQ(catalog.default_mask(), 0u);
  catalog.masks[1].fallback = catalog.masks[2].fallback = true;
  EXPECT_EQ(catalog.default_mask(), 1u);
}

} // namespace
} // namespace cortiq::formats
