// STQ1_0: slots and signs of the 64 groups in the order of nibble and bit codes, so that a dword gives four
// neighbouring groups at a time.

#include "formats/layout/code_order.h"
#include "formats/layout/fill_blocks.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kFields[] = {{"d", 0, 2, 1}, {"slots", 2, 4, 8}, {"signs", 34, 4, 2}};

// File: slots 32 (group 2k in the low half of byte k), signs 8, d. Record: nibble h of byte j of dword u is group
// 8u + 4h + j.
void to_record(const uint8_t* block, uint8_t* record) {
  std::memcpy(record, block + 40, 2);
  for (int u = 0; u < 8; ++u)
    for (int j = 0; j < 4; ++j) {
      const auto slot = [&](int g) { return block[g / 2] >> (g % 2 * 4) & 15; };
      record[2 + 4 * u + j] = static_cast<uint8_t>(slot(8 * u + j) | slot(8 * u + 4 + j) << 4);
    }
  convert_dwords<bits_to_record>(block + 32, record + 34, 2);
}
void from_record(const uint8_t* record, uint8_t* block) {
  std::memcpy(block + 40, record, 2);
  for (int k = 0; k < 32; ++k) {
    const auto slot = [&](int g) { return record[2 + g / 8 * 4 + g % 4] >> (g % 8 / 4 * 4) & 15; };
    block[k] = static_cast<uint8_t>(slot(2 * k) | slot(2 * k + 1) << 4);
  }
  convert_dwords<bits_from_record>(record + 34, block + 32, 2);
}

} // namespace

constinit const RecordForm kSTQ10Form =
    converted_form<256, 42, to_record, from_record>(CodecId::kSTQ1_0, kFields, fill_scaled<256, 42, 40, 0.866f>);

} // namespace cortiq::formats
