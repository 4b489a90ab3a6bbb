// Where rows lie in sources that have them in another order, on sizes small enough to write out.

#include "tools/cortiq-convert/row_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "tools/cortiq-convert/source_tensors.h"

namespace cortiq::convert {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> first(const IndexOrder& order, uint64_t count) {
  std::vector<uint64_t> out;
  for (uint64_t i = 0; i < count; ++i)
    out.push_back(order(i));
  return out;
}

TEST(RowOrder, NeighboursBecomeHalves) {
  EXPECT_THAT(first(from_neighbours(6), 12), ElementsAre(0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11));
}

// Two plain rows, then four rotated ones, in each of two heads.
TEST(RowOrder, RotatedRowsOfLatentHeadsComeFirst) {
  EXPECT_THAT(first(from_nope_first(2, 4), 12), ElementsAre(2, 4, 3, 5, 0, 1, 8, 10, 9, 11, 6, 7));
}

TEST(RowOrder, OnlyTheRotatedRowsBehindTheLatentMove) {
  EXPECT_THAT(first(from_neighbours_after(3, 4), 7), ElementsAre(0, 1, 2, 3, 5, 4, 6));
}

// Three key heads with two value heads of two rows each: the file has all first value heads, then all second ones.
TEST(RowOrder, TiledHeadsAreGatheredByTheirKeyHead) {
  EXPECT_THAT(first(from_tiled_heads(3, 2, 2), 12), ElementsAre(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11));
  EXPECT_THAT(first(after_rows(2, from_tiled_heads(2, 2, 1)), 6), ElementsAre(0, 1, 2, 4, 3, 5));
}

// Two key heads with one query, one key, two values and two gates each.
TEST(RowOrder, GroupedInputsOfDeltaBlocksAreTakenApart) {
  const DeltaSizes d{.taps = 4, .key_heads = 2, .value_heads = 4, .key_size = 1, .value_size = 1};
  EXPECT_EQ(grouped_rows(d), 12u);
  EXPECT_THAT(first(grouped_qkv(d), 8), ElementsAre(0, 6, 1, 7, 2, 3, 8, 9));
  EXPECT_THAT(first(grouped_z(d), 4), ElementsAre(4, 5, 10, 11));
  EXPECT_THAT(first(grouped_b(d), 4), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(first(grouped_a(d), 4), ElementsAre(2, 3, 6, 7));
}

} // namespace
} // namespace cortiq::convert
