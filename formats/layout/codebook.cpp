#include "formats/layout/codebook.h"

#include "formats/codec/iq_grids.h"

namespace cortiq::formats {
namespace {

uint32_t iq2_code(uint8_t magnitude) {
  return magnitude / 17;
}
uint32_t iq3_xxs_code(uint8_t magnitude) {
  return magnitude / 8;
}
uint32_t iq3_s_code(uint8_t magnitude) {
  return magnitude / 2;
}
uint32_t iq1_code(uint8_t level) {
  return static_cast<uint8_t>(level + 1);
}

template <class Grid>
std::vector<uint16_t> packed_grid(const Grid& grid, uint32_t bits, uint32_t (*code)(uint8_t)) {
  std::vector<uint16_t> out;
  for (const auto entry : grid) {
    uint32_t codes = 0;
    for (size_t j = 0; j < sizeof(entry); ++j)
      codes |= code(static_cast<uint8_t>(entry >> (8 * j))) << (bits * j);
    out.push_back(static_cast<uint16_t>(codes));
  }
  return out;
}

} // namespace

std::vector<uint16_t> codebook(CodecId codec) {
  switch (codec) {
  case CodecId::kIQ2_XXS:
    return packed_grid(iq2_xxs_grid(), 2, iq2_code);
  case CodecId::kIQ2_XS:
    return packed_grid(iq2_xs_grid(), 2, iq2_code);
  case CodecId::kIQ2_S:
    return packed_grid(iq2_s_grid(), 2, iq2_code);
  case CodecId::kIQ3_XXS:
    return packed_grid(iq3_xxs_grid(), 3, iq3_xxs_code);
  case CodecId::kIQ3_S:
    return packed_grid(iq3_s_grid(), 3, iq3_s_code);
  case CodecId::kIQ1_S:
  case CodecId::kIQ1_M:
    return packed_grid(iq1_grid(), 2, iq1_code);
  default:
    return {};
  }
}

uint64_t codebook_bytes(CodecId codec) {
  switch (codec) {
  case CodecId::kIQ2_XXS:
  case CodecId::kIQ3_XXS:
    return 512;
  case CodecId::kIQ2_XS:
  case CodecId::kIQ3_S:
    return 1024;
  case CodecId::kIQ2_S:
    return 2048;
  case CodecId::kIQ1_S:
  case CodecId::kIQ1_M:
    return 4096;
  default:
    return 0;
  }
}

} // namespace cortiq::formats
