// IQ4_NL to vbit_ro with 8 bits a row: its sixteen levels are integers from -127 to 113, but at uneven distances, which
// four bits of a CMF codec cannot say.

#include "formats/codec/iq4_levels.h"
#include "formats/encode/keeper_rows.h"
#include "formats/encode/vbit_keeper.h"

namespace cortiq::formats {
namespace {

struct Block {
  static constexpr int kWeights = 32, kBytes = 18, kScaleAt = 0;
  static void levels(const uint8_t* block, int* out) {
    for (int i = 0; i < 16; ++i) {
      out[i] = kIQ4Levels[block[2 + i] & 15];
      out[16 + i] = kIQ4Levels[block[2 + i] >> 4];
    }
  }
};

} // namespace

constinit const Keeper kIQ4NLKeeper = {CodecId::kIQ4_NL, CodecId::kVBitRO, nullptr, write_vbit<Block, 8>};

} // namespace cortiq::formats
