// IQ4_XS as it stands in the file, and the codebook codecs with their parts in dwords: grid indices, signs and scales
// are the file's bytes, so that a lane takes its own with one shift and one mask.

#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kIQ4XSFields[] = {{"d", 0, 2, 1}, {"sh", 2, 2, 1}, {"sl", 4, 4, 1}, {"qs", 8, 4, 32}};
constexpr LayoutField kIQ2XXSFields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 8}, {"signs", 34, 4, 8}};
constexpr LayoutField kIQ2XSFields[] = {{"d", 0, 2, 1}, {"sc", 2, 4, 2}, {"qs", 10, 4, 16}};
constexpr LayoutField kIQ2SFields[] = {
    {"d", 0, 2, 1}, {"sc", 2, 4, 2}, {"qh", 10, 4, 2}, {"qs", 18, 4, 8}, {"signs", 50, 4, 8}};
constexpr LayoutField kIQ3XXSFields[] = {{"d", 0, 2, 1}, {"signs", 2, 4, 8}, {"qs", 34, 4, 16}};
constexpr LayoutField kIQ3SFields[] = {
    {"d", 0, 2, 1}, {"sc", 2, 4, 1}, {"qh", 6, 4, 2}, {"signs", 14, 4, 8}, {"qs", 46, 4, 16}};
constexpr LayoutField kIQ1SFields[] = {{"d", 0, 2, 1}, {"qh", 2, 4, 4}, {"qs", 18, 4, 8}};
constexpr LayoutField kIQ1MFields[] = {{"sc", 0, 4, 2}, {"qh", 8, 4, 4}, {"qs", 24, 4, 8}};

/// A run of bytes that stands at `block` in the file's block and at `record` in the record.
struct Move {
  uint32_t block;
  uint32_t record;
  uint32_t bytes;
};
constexpr Move kIQ2XSMoves[] = {{0, 0, 2}, {66, 2, 8}, {2, 10, 64}};
constexpr Move kIQ2SMoves[] = {{0, 0, 2}, {74, 2, 8}, {66, 10, 8}, {2, 18, 64}};
constexpr Move kIQ3XXSMoves[] = {{0, 0, 2}, {66, 2, 32}, {2, 34, 64}};
constexpr Move kIQ3SMoves[] = {{0, 0, 2}, {106, 2, 4}, {66, 6, 40}, {2, 46, 64}};
constexpr Move kIQ1SMoves[] = {{0, 0, 2}, {34, 2, 16}, {2, 18, 32}};
constexpr Move kIQ1MMoves[] = {{48, 0, 8}, {32, 8, 16}, {0, 24, 32}};

template <auto& kMoves>
void to_record(const uint8_t* block, uint8_t* record) {
  for (const Move& move : kMoves)
    std::memcpy(record + move.record, block + move.block, move.bytes);
}
template <auto& kMoves>
void from_record(const uint8_t* record, uint8_t* block) {
  for (const Move& move : kMoves)
    std::memcpy(block + move.block, record + move.record, move.bytes);
}

// File: d, then for each group of 32 a dword of grid indices and a dword of signs.
void iq2_xxs_to_record(const uint8_t* block, uint8_t* record) {
  std::memcpy(record, block, 2);
  for (int g = 0; g < 8; ++g) {
    std::memcpy(record + 2 + 4 * g, block + 2 + 8 * g, 4);
    std::memcpy(record + 34 + 4 * g, block + 6 + 8 * g, 4);
  }
}
void iq2_xxs_from_record(const uint8_t* record, uint8_t* block) {
  std::memcpy(block, record, 2);
  for (int g = 0; g < 8; ++g) {
    std::memcpy(block + 2 + 8 * g, record + 2 + 4 * g, 4);
    std::memcpy(block + 6 + 8 * g, record + 34 + 4 * g, 4);
  }
}

/// Random blocks with the f16 d in front; `kDeviation` is that of the weights at d = 1.
template <uint32_t kBytes, float kDeviation>
void fill_blocks(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange scales = scales_around(kFillDeviation / kDeviation);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += kBytes) {
    random.bytes(block, kBytes);
    store_u16(block, random.half_in(scales));
  }
}

void fill_iq1_m(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  const HalfRange scales = scales_around(kFillDeviation / 7.2f);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 256; ++b, block += 56) {
    random.bytes(block, 56);
    const uint16_t d = random.half_in(scales);
    for (int k = 0; k < 4; ++k) // nibble k of d stands in the top of scale word k
      block[49 + 2 * k] = static_cast<uint8_t>((block[49 + 2 * k] & 15) | (d >> (4 * k) & 15) << 4);
  }
}

/// A form of blocks of 256 weights in `kBytes` bytes, which kTo brings to records and kFrom back.
template <uint32_t kBytes, auto kTo, auto kFrom>
constexpr RecordForm iq_form(CodecId codec, std::span<const LayoutField> fields, decltype(RecordForm::fill_row) fill) {
  return {
      .codec = codec,
      .block = 256,
      .block_bytes = kBytes,
      .fields = fields,
      .planes = block_planes<256, kBytes>,
      .write_records = convert_records<kBytes, kTo>,
      .decode = decode_converted<kBytes, kFrom>,
      .fill_row = fill,
  };
}
template <uint32_t kBytes, auto& kMoves>
constexpr RecordForm iq_form(CodecId codec, std::span<const LayoutField> fields, decltype(RecordForm::fill_row) fill) {
  return iq_form<kBytes, to_record<kMoves>, from_record<kMoves>>(codec, fields, fill);
}

} // namespace

constinit const RecordForm kIQ4XSForm = {
    .codec = CodecId::kIQ4_XS,
    .block = 256,
    .block_bytes = 136,
    .fields = kIQ4XSFields,
    .planes = block_planes<256, 136>,
    .write_records = copy_records<136>,
    .decode = decode_copied,
    .fill_row = fill_blocks<136, 1246.0f>,
};

constinit const RecordForm kIQ2XXSForm =
    iq_form<66, iq2_xxs_to_record, iq2_xxs_from_record>(CodecId::kIQ2_XXS, kIQ2XXSFields, fill_blocks<66, 53.36f>);
constinit const RecordForm kIQ2XSForm =
    iq_form<74, kIQ2XSMoves>(CodecId::kIQ2_XS, kIQ2XSFields, fill_blocks<74, 55.9f>);
constinit const RecordForm kIQ2SForm = iq_form<82, kIQ2SMoves>(CodecId::kIQ2_S, kIQ2SFields, fill_blocks<82, 56.39f>);
constinit const RecordForm kIQ3XXSForm =
    iq_form<98, kIQ3XXSMoves>(CodecId::kIQ3_XXS, kIQ3XXSFields, fill_blocks<98, 142.4f>);
constinit const RecordForm kIQ3SForm = iq_form<110, kIQ3SMoves>(CodecId::kIQ3_S, kIQ3SFields, fill_blocks<110, 140.2f>);
constinit const RecordForm kIQ1SForm = iq_form<50, kIQ1SMoves>(CodecId::kIQ1_S, kIQ1SFields, fill_blocks<50, 7.2f>);
constinit const RecordForm kIQ1MForm = iq_form<56, kIQ1MMoves>(CodecId::kIQ1_M, kIQ1MFields, fill_iq1_m);

} // namespace cortiq::formats
