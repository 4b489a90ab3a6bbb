// Q5_0 to vbit_ro with 6 bits a row: five hold levels from -15, and Q5_0's begin at -16.

#include "formats/encode/keeper_rows.h"
#include "formats/encode/vbit_keeper.h"

namespace cortiq::formats {
namespace {

struct Block {
  static constexpr int kWeights = 32, kBytes = 22, kScaleAt = 0;
  static void levels(const uint8_t* block, int* out) {
    const uint32_t high = load_u32(block + 2);
    for (int i = 0; i < 16; ++i) {
      out[i] = ((block[6 + i] & 15) | static_cast<int>(high >> i & 1) << 4) - 16;
      out[16 + i] = (block[6 + i] >> 4 | static_cast<int>(high >> (16 + i) & 1) << 4) - 16;
    }
  }
};

} // namespace

constinit const Keeper kQ50Keeper = {CodecId::kQ5_0, CodecId::kVBitRO, nullptr, write_vbit<Block, 6>};

} // namespace cortiq::formats
