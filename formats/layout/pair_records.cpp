// Codecs whose files keep the 2-bit codes of four neighbouring weights in a byte: Q2_0 (64 and 128), G8_0. Records have
// them in record order (code_order.h).

#include "formats/layout/code_order.h"
#include "formats/layout/fill_blocks.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kQ20Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 4}};
constexpr LayoutField kQ20G128Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 8}};
constexpr LayoutField kG80Fields[] = {{"d", 0, 2, 4}, {"qs", 8, 4, 2}};

/// Scales and codes stand where the file has them; the exchange of codes is its own inverse.
template <uint32_t kBlock, uint32_t kHead>
constexpr RecordForm pair_form(CodecId codec, std::span<const LayoutField> fields,
                               decltype(RecordForm::fill_row) fill) {
  constexpr auto kExchange = convert_codes<kHead, kBlock / 16, transpose_pairs>;
  return converted_form<kBlock, kHead + kBlock / 4, kExchange, kExchange>(codec, fields, fill);
}

void fill_g8_0(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 32; ++b, block += 16) {
    random.bytes(block + 8, 8);
    make_ternary(block + 8, 2);
    for (int k = 0; k < 4; ++k)
      store_u16(block + 2 * k,
                static_cast<uint16_t>(std::bit_cast<uint32_t>(random.around(kFillDeviation / 0.7071f)) >> 16));
  }
}

} // namespace

constinit const RecordForm kQ20Form =
    pair_form<64, 2>(CodecId::kQ2_0, kQ20Fields, fill_scaled<64, 18, 0, 0.7071f, ternary_codes<2, 4>>);
constinit const RecordForm kQ20G128Form =
    pair_form<128, 2>(CodecId::kQ2_0_G128, kQ20G128Fields, fill_scaled<128, 34, 0, 0.7071f, ternary_codes<2, 8>>);
constinit const RecordForm kG80Form = pair_form<32, 8>(CodecId::kG8_0, kG80Fields, fill_g8_0);

} // namespace cortiq::formats
