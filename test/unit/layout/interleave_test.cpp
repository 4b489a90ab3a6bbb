#include "formats/layout/interleave.h"

#include <vector>

#include <gtest/gtest.h>

namespace cortiq::formats {
namespace {

TEST(Interleave, PutsUnitsOfNeighbouringRowsSideBySide) {
  constexpr uint64_t kUnits = 5;
  for (const uint32_t unit : {1u, 2u, 4u})
    for (uint32_t rows = 1; rows <= 16; ++rows) {
      const size_t stride = kUnits * unit + 3;
      std::vector<uint8_t> records(rows * stride);
      for (size_t i = 0; i < records.size(); ++i)
        records[i] = static_cast<uint8_t>(i * 37 + i / 256);
      std::vector<uint8_t> woven(rows * kUnits * unit);
      interleave(records.data(), stride, rows, unit, kUnits, woven.data());
      for (uint32_t r = 0; r < rows; ++r) {
        for (uint64_t u = 0; u < kUnits; ++u)
          for (uint32_t byte = 0; byte < unit; ++byte)
            ASSERT_EQ(woven[(u * rows + r) * unit + byte], records[r * stride + u * unit + byte]);
        std::vector<uint8_t> back(kUnits * unit);
        deinterleave(woven.data(), rows, r, unit, kUnits, back.data());
        ASSERT_TRUE(std::equal(back.begin(), back.end(), records.begin() + static_cast<ptrdiff_t>(r * stride)));
      }
    }
}

} // namespace
} // namespace cortiq::formats
