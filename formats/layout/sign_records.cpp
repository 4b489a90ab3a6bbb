// Codecs of one bit a weight: q1, q1s, q1g, Q1_0, and FV5's three bit planes. Bits stand in record order
// (code_order.h). The overlay of q1s is not in the records (overlay_form.h).

#include "formats/codec/block_decode.h"
#include "formats/codec/q1_tiles.h"
#include "formats/layout/code_order.h"
#include "formats/layout/fill_blocks.h"
#include "formats/layout/overlay_form.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kTileFields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 1}};
constexpr LayoutField kBlock128Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 4}};
constexpr LayoutField kFV5Fields[] = {
    {"low", 0, 4, 1}, {"high", 4, 4, 1}, {"plus", 8, 4, 8}, {"minus", 40, 4, 8}, {"select", 72, 4, 8}};

template <uint32_t kBlock, uint32_t kBytes, uint32_t kHead>
constexpr RecordForm sign_form(CodecId codec, std::span<const LayoutField> fields,
                               decltype(RecordForm::fill_row) fill) {
  constexpr uint32_t kDwords = (kBytes - kHead) / 4;
  return converted_form<kBlock, kBytes, convert_codes<kHead, kDwords, bits_to_record>,
                        convert_codes<kHead, kDwords, bits_from_record>>(codec, fields, fill);
}

void plane_to_record(const uint8_t* bits, uint8_t* record) {
  convert_dwords<bits_to_record>(bits, record, 4);
}
void plane_from_record(const uint8_t* record, uint8_t* bits) {
  convert_dwords<bits_from_record>(record, bits, 4);
}

// Of tiles alone, so that it serves q1s too: its overlay is the caller's.
void decode_tiles(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunkBytes];
  uint8_t tiles[kDecodeChunkBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b)
    convert_codes<2, 1, bits_from_record>(records + 6 * b, tiles + 6 * b);
  decode_blocks<32, 6, decode_q1_tile>(tiles, 1, weights, 0, out);
}

constexpr RecordForm tile_form(CodecId codec, const OverlayForm* overlay) {
  RecordForm form = sign_form<32, 6, 2>(codec, kTileFields, fill_scaled<32, 6, 0, 1.0f>);
  form.decode = decode_tiles;
  form.overlay = overlay;
  return form;
}

// Half of the weights have a sign, half of these the high scale, which is twice the low one.
void fill_fv5(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += 104) {
    const float low = random.around(kFillDeviation / 1.118f);
    store_u32(block, std::bit_cast<uint32_t>(low));
    store_u32(block + 4, std::bit_cast<uint32_t>(2.0f * low));
    random.bytes(block + 8, 96);
    for (int u = 0; u < 8; ++u) {
      const uint32_t sign = load_u32(block + 8 + 4 * u);
      const uint32_t present = load_u32(block + 40 + 4 * u);
      store_u32(block + 8 + 4 * u, present & sign);
      store_u32(block + 40 + 4 * u, present & ~sign);
      store_u32(block + 72 + 4 * u, load_u32(block + 72 + 4 * u) & present);
    }
  }
}

} // namespace

constinit const RecordForm kQ1Form = tile_form(CodecId::kQ1, nullptr);
constinit const RecordForm kQ1SForm = tile_form(CodecId::kQ1S, &kQ1SOverlay);
constinit const RecordForm kQ1GForm = joined_form<128, 2, 16, plane_to_record, plane_from_record>(
    CodecId::kQ1G, kBlock128Fields, fill_split<128, 16, 1.0f>);
constinit const RecordForm kQ10Form =
    sign_form<128, 18, 2>(CodecId::kQ1_0, kBlock128Fields, fill_scaled<128, 18, 0, 1.0f>);
constinit const RecordForm kFV5Form = sign_form<256, 104, 8>(CodecId::kFV5, kFV5Fields, fill_fv5);

} // namespace cortiq::formats
