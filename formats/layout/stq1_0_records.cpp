// STQ1_0: slots and signs of the 64 groups in the order of nibble and bit codes, so that a dword gives four
// neighbouring groups at a time.

#include "formats/layout/code_order.h"
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

void fill(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange scales = scales_around(kFillDeviation / 0.866f);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += 42) {
    random.bytes(block, 42);
    store_u16(block + 40, random.half_in(scales));
  }
}

} // namespace

constinit const RecordForm kSTQ10Form = {
    .codec = CodecId::kSTQ1_0,
    .block = 256,
    .block_bytes = 42,
    .fields = kFields,
    .planes = block_planes<256, 42>,
    .write_records = convert_records<42, to_record>,
    .decode = decode_converted<42, from_record>,
    .fill_row = fill,
};

} // namespace cortiq::formats
