// How an expert bank is cut: by what is asked for, by memory, by what can be bound, and by the number of segments.

#include <gtest/gtest.h>

#include "runtime/vulkan/bank_size.h"

namespace cortiq::runtime::vulkan {
namespace {

constexpr uint64_t kGibi = uint64_t{1} << 30, kMebi = uint64_t{1} << 20;

/// Experts of 4 MiB of gate and up and 2 MiB of down, on a device of 80 GiB that binds 1 GiB.
BankRequest request(uint64_t experts) {
  BankRequest out;
  out.experts = experts;
  out.memory = 80 * kGibi;
  out.outer_bytes = 4 * kMebi;
  out.down_bytes = 2 * kMebi;
  out.largest = kGibi;
  return out;
}

std::vector<BankSize> sizes(const BankRequest& request) {
  const StatusOr<std::vector<BankSize>> made = bank_sizes(request);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : std::vector<BankSize>(1);
}

TEST(BankSize, WorkSpaceIsATenthWithinTwoAndFourGibi) {
  EXPECT_EQ(bank_work_space(80 * kGibi), 4 * kGibi);
  EXPECT_EQ(bank_work_space(30 * kGibi), 3 * kGibi);
  EXPECT_EQ(bank_work_space(8 * kGibi), 2 * kGibi);
  EXPECT_EQ(bank_work_space(2 * kGibi), kGibi); // half of what there is
}

TEST(BankSize, HoldsWhatIsAskedForInWholeSegments) {
  BankSize size = sizes(request(16))[0];
  EXPECT_EQ(size.segments, 8u);
  EXPECT_EQ(size.segment_slots, 2u);
  EXPECT_EQ(size.slots(), 16u);
  BankRequest some = request(100);
  some.slots = 20; // three a segment: six of them are whole
  size = sizes(some)[0];
  EXPECT_EQ(size.segment_slots, 3u);
  EXPECT_EQ(size.used_segments, 6u);
  EXPECT_EQ(size.slots(), 18u);
  some.slots = 5;
  EXPECT_EQ(sizes(some)[0].slots(), 5u);
  some.slots = 47; // rather seven segments of six than eight of five
  EXPECT_EQ(sizes(some)[0].slots(), 42u);
  some.slots = 1000; // more than there are: all have a place
  EXPECT_EQ(sizes(some)[0].slots(), 104u);
  some.memory = 2 * 103 * 6 * kMebi; // less work space, one too few for that
  EXPECT_EQ(sizes(some)[0].slots(), 96u);
}

TEST(BankSize, StaysWithinMemory) {
  BankRequest small = request(10000);
  small.memory = 3 * kGibi;
  small.others = kGibi;
  const BankSize size = sizes(small)[0];
  EXPECT_LE(size.slots() * 6 * kMebi, kGibi / 2);
  EXPECT_GT(size.slots(), 60u);
  small.others = 2 * kGibi;
  const Status refused = bank_sizes(small).status();
  EXPECT_NE(refused.message().find("no place for experts"), std::string::npos) << refused.message();
}

TEST(BankSize, TakesSixteenSegmentsWhereEightAreTooSmall) {
  // 256 slots a segment of 1 GiB.
  EXPECT_EQ(sizes(request(8 * 256)).size(), 1u);
  const std::vector<BankSize> both = sizes(request(8 * 256 + 1));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].segments, 16u);
  EXPECT_EQ(both[1].segments, 8u); // where memory for the first is refused
  EXPECT_EQ(both[1].slots(), 8u * 256);
  BankRequest forced = request(8 * 256 + 1);
  forced.segments = 8;
  ASSERT_EQ(sizes(forced).size(), 1u);
  EXPECT_EQ(sizes(forced)[0].segments, 8u);
  forced = request(16);
  forced.segments = 16;
  ASSERT_EQ(sizes(forced).size(), 1u);
  EXPECT_EQ(sizes(forced)[0].segments, 16u);
}

TEST(BankSize, RefusesWhatTheDeviceDoesNotBind) {
  BankRequest few = request(8 * 256 + 1);
  few.most_segments = 12;
  ASSERT_EQ(sizes(few).size(), 1u); // it is not asked for sixteen
  EXPECT_EQ(sizes(few)[0].segments, 8u);
  few.segments = 16;
  EXPECT_NE(bank_sizes(few).status().message().find("does not bind 16 segments"), std::string::npos);
  few.segments = 0;
  few.most_segments = 4;
  EXPECT_NE(bank_sizes(few).status().message().find("does not bind 8 segments"), std::string::npos);
  BankRequest narrow = request(16);
  narrow.largest = 3 * kMebi;
  EXPECT_NE(bank_sizes(narrow).status().message().find("binds at most"), std::string::npos);
}

} // namespace
} // namespace cortiq::runtime::vulkan
