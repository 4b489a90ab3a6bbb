// Q8_0 to vbit_ro with 8 bits a row. Level -128, which quantizers never write, has no code there.

#include "formats/encode/keeper_rows.h"
#include "formats/encode/vbit_keeper.h"

namespace cortiq::formats {
namespace {

struct Block {
  static constexpr int kWeights = 32, kBytes = 34, kScaleAt = 0;
  static void levels(const uint8_t* block, int* out) {
    for (int i = 0; i < 32; ++i)
      out[i] = static_cast<int8_t>(block[2 + i]);
  }
};

bool holds(const uint8_t* row, uint64_t cols) {
  for (uint64_t i = 0; i < cols; ++i)
    if (row[i / 32 * 34 + 2 + i % 32] == 0x80)
      return false;
  return true;
}

} // namespace

constinit const Keeper kQ80Keeper = {CodecId::kQ8_0, CodecId::kVBitRO, holds, write_vbit<Block, 8>};

} // namespace cortiq::formats
