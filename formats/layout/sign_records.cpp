// Codecs of one bit a weight: q1, q1s, q1g, Q1_0, and FV5's three bit planes. Bits stand in record order
// (code_order.h). The overlay of q1s is not in the records (overlay_form.h).

#include "formats/codec/q1_tiles.h"
#include "formats/layout/code_order.h"
#include "formats/layout/overlay_form.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kTileFields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 1}};
constexpr LayoutField kBlock128Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 4}};
constexpr LayoutField kFV5Fields[] = {
    {"low", 0, 4, 1}, {"high", 4, 4, 1}, {"plus", 8, 4, 8}, {"minus", 40, 4, 8}, {"select", 72, 4, 8}};

template <uint32_t kHead, uint32_t kDwords>
void to_record(const uint8_t* block, uint8_t* record) {
  std::memcpy(record, block, kHead);
  convert_dwords<bits_to_record>(block + kHead, record + kHead, kDwords);
}
template <uint32_t kHead, uint32_t kDwords>
void from_record(const uint8_t* record, uint8_t* block) {
  std::memcpy(block, record, kHead);
  convert_dwords<bits_from_record>(record + kHead, block + kHead, kDwords);
}

void decode_tiles(const PackedRow& row, uint64_t first, uint64_t count, uint64_t, float* out) {
  uint8_t records[kDecodeChunkBytes];
  uint8_t tiles[kDecodeChunkBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b)
    from_record<2, 1>(records + 6 * b, tiles + 6 * b);
  decode_q1_row(tiles, 32 * count, 0, out);
}

PlaneSizes q1g_planes(uint64_t cols) {
  return {.row_bytes = {cols / 8, cols / 128 * 2}};
}

void write_q1g(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  for (uint64_t b = first; b < first + count; ++b, out += 18) {
    std::memcpy(out, row.plane[1] + 2 * b, 2);
    convert_dwords<bits_to_record>(row.plane[0] + 16 * b, out + 2, 4);
  }
}

void decode_q1g(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunkBytes];
  uint8_t payload[kDecodeChunkBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b) {
    convert_dwords<bits_from_record>(records + 18 * b + 2, payload + 16 * b, 4);
    std::memcpy(payload + 16 * count + 2 * b, records + 18 * b, 2);
  }
  codec_info(CodecId::kQ1G).decode_row(payload, 1, weights, 0, out);
}

void fill_tiles(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange scales = scales_around(kFillDeviation / 1.0f);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 32; ++b, block += 6) {
    random.bytes(block, 6);
    store_u16(block + 0, random.half_in(scales));
  }
}
void fill_q1_0(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange scales = scales_around(kFillDeviation / 1.0f);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 128; ++b, block += 18) {
    random.bytes(block, 18);
    store_u16(block + 0, random.half_in(scales));
  }
}

void fill_q1g(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  random.bytes(row.plane[0], cols / 8);
  for (uint64_t b = 0; b < cols / 128; ++b)
    store_u16(row.plane[1] + 2 * b, random.half_in(scales_around(kFillDeviation)));
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

constinit const RecordForm kQ1Form = {
    .codec = CodecId::kQ1,
    .block = 32,
    .block_bytes = 6,
    .fields = kTileFields,
    .planes = block_planes<32, 6>,
    .write_records = convert_records<6, to_record<2, 1>>,
    .decode = decode_tiles,
    .fill_row = fill_tiles,
};

constinit const RecordForm kQ1SForm = {
    .codec = CodecId::kQ1S,
    .block = 32,
    .block_bytes = 6,
    .fields = kTileFields,
    .planes = block_planes<32, 6>,
    .write_records = convert_records<6, to_record<2, 1>>,
    .decode = decode_tiles,
    .fill_row = fill_tiles,
    .overlay = &kQ1SOverlay,
};

constinit const RecordForm kQ1GForm = {
    .codec = CodecId::kQ1G,
    .block = 128,
    .block_bytes = 18,
    .fields = kBlock128Fields,
    .planes = q1g_planes,
    .write_records = write_q1g,
    .decode = decode_q1g,
    .fill_row = fill_q1g,
};

constinit const RecordForm kQ10Form = {
    .codec = CodecId::kQ1_0,
    .block = 128,
    .block_bytes = 18,
    .fields = kBlock128Fields,
    .planes = block_planes<128, 18>,
    .write_records = convert_records<18, to_record<2, 4>>,
    .decode = decode_converted<18, from_record<2, 4>>,
    .fill_row = fill_q1_0,
};

constinit const RecordForm kFV5Form = {
    .codec = CodecId::kFV5,
    .block = 256,
    .block_bytes = 104,
    .fields = kFV5Fields,
    .planes = block_planes<256, 104>,
    .write_records = convert_records<104, to_record<8, 24>>,
    .decode = decode_converted<104, from_record<8, 24>>,
    .fill_row = fill_fv5,
};

} // namespace cortiq::formats
