// q1s tensors beyond the 2^32 weights that its outliers' indices reach.

#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include "formats/codec/codec.h"

namespace cortiq::formats {
namespace {

TEST(Q1SLarge, IndicesDoNotWrapIntoRowsBeyondThem) {
  // 2^32 weights and one row more, in zero pages that are never touched but for one row and the outliers.
  constexpr uint64_t kCols = 1024, kRows = (uint64_t{1} << 32) / kCols + 1;
  constexpr uint64_t kTiles = kRows * (kCols / 32) * 6, kSize = kTiles + 4 + 2 * 6;
  void* map = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED)
    GTEST_SKIP() << "there is no address space for 805 MB";
  auto* payload = static_cast<uint8_t*>(map);
  const uint32_t count = 2, first = 5, last = 0xffffffffu;
  const uint16_t one = 0x3c00, two = 0x4000;
  std::memcpy(payload + kTiles, &count, 4);
  std::memcpy(payload + kTiles + 4, &first, 4);
  std::memcpy(payload + kTiles + 8, &one, 2);
  std::memcpy(payload + kTiles + 10, &last, 4);
  std::memcpy(payload + kTiles + 14, &two, 2);

  const Codec& codec = codec_info(CodecId::kQ1S);
  EXPECT_TRUE(check_payload(codec, {payload, kSize}, kRows, kCols, /*strict=*/true).ok());
  std::vector<float> row(kCols);
  const auto outliers = [&](uint64_t index) {
    codec.decode_row(payload, kRows, kCols, index, row.data());
    std::vector<std::pair<size_t, float>> found;
    for (size_t i = 0; i < kCols; ++i)
      if (row[i] != 0)
        found.emplace_back(i, row[i]);
    return found;
  };
  using Found = std::vector<std::pair<size_t, float>>;
  EXPECT_EQ(outliers(0), (Found{{5, 1.0f}}));
  EXPECT_EQ(outliers(kRows - 2), (Found{{kCols - 1, 2.0f}}));
  EXPECT_EQ(outliers(kRows - 1), Found()) << "the row beyond 2^32 has no index of its own, and takes no other's";
  munmap(map, kSize);
}

} // namespace
} // namespace cortiq::formats
