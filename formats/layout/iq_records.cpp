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

// Random blocks with the f16 d in front; `deviation` is that of the weights at d = 1.
template <uint32_t kBytes>
void fill_blocks(RandomStream& random, uint64_t cols, uint8_t* block, float deviation) {
  const HalfRange scales = scales_around(kFillDeviation / deviation);
  for (uint64_t b = 0; b < cols / 256; ++b, block += kBytes) {
    random.bytes(block, kBytes);
    store_u16(block, random.half_in(scales));
  }
}

void fill_iq4_xs(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<136>(random, cols, row.plane[0], 1246.0f);
}
void fill_iq2_xxs(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<66>(random, cols, row.plane[0], 53.36f);
}
void fill_iq2_xs(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<74>(random, cols, row.plane[0], 55.9f);
}
void fill_iq2_s(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<82>(random, cols, row.plane[0], 56.39f);
}
void fill_iq3_xxs(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<98>(random, cols, row.plane[0], 142.4f);
}
void fill_iq3_s(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<110>(random, cols, row.plane[0], 140.2f);
}
void fill_iq1_s(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<50>(random, cols, row.plane[0], 7.2f);
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

} // namespace

constinit const RecordForm kIQ4XSForm = {
    .codec = CodecId::kIQ4_XS,
    .block = 256,
    .block_bytes = 136,
    .fields = kIQ4XSFields,
    .planes = block_planes<256, 136>,
    .write_records = copy_records<136>,
    .decode = decode_copied,
    .fill_row = fill_iq4_xs,
};

constinit const RecordForm kIQ2XXSForm = {
    .codec = CodecId::kIQ2_XXS,
    .block = 256,
    .block_bytes = 66,
    .fields = kIQ2XXSFields,
    .planes = block_planes<256, 66>,
    .write_records = convert_records<66, iq2_xxs_to_record>,
    .decode = decode_converted<66, iq2_xxs_from_record>,
    .fill_row = fill_iq2_xxs,
};

constinit const RecordForm kIQ2XSForm = {
    .codec = CodecId::kIQ2_XS,
    .block = 256,
    .block_bytes = 74,
    .fields = kIQ2XSFields,
    .planes = block_planes<256, 74>,
    .write_records = convert_records<74, to_record<kIQ2XSMoves>>,
    .decode = decode_converted<74, from_record<kIQ2XSMoves>>,
    .fill_row = fill_iq2_xs,
};

constinit const RecordForm kIQ2SForm = {
    .codec = CodecId::kIQ2_S,
    .block = 256,
    .block_bytes = 82,
    .fields = kIQ2SFields,
    .planes = block_planes<256, 82>,
    .write_records = convert_records<82, to_record<kIQ2SMoves>>,
    .decode = decode_converted<82, from_record<kIQ2SMoves>>,
    .fill_row = fill_iq2_s,
};

constinit const RecordForm kIQ3XXSForm = {
    .codec = CodecId::kIQ3_XXS,
    .block = 256,
    .block_bytes = 98,
    .fields = kIQ3XXSFields,
    .planes = block_planes<256, 98>,
    .write_records = convert_records<98, to_record<kIQ3XXSMoves>>,
    .decode = decode_converted<98, from_record<kIQ3XXSMoves>>,
    .fill_row = fill_iq3_xxs,
};

constinit const RecordForm kIQ3SForm = {
    .codec = CodecId::kIQ3_S,
    .block = 256,
    .block_bytes = 110,
    .fields = kIQ3SFields,
    .planes = block_planes<256, 110>,
    .write_records = convert_records<110, to_record<kIQ3SMoves>>,
    .decode = decode_converted<110, from_record<kIQ3SMoves>>,
    .fill_row = fill_iq3_s,
};

constinit const RecordForm kIQ1SForm = {
    .codec = CodecId::kIQ1_S,
    .block = 256,
    .block_bytes = 50,
    .fields = kIQ1SFields,
    .planes = block_planes<256, 50>,
    .write_records = convert_records<50, to_record<kIQ1SMoves>>,
    .decode = decode_converted<50, from_record<kIQ1SMoves>>,
    .fill_row = fill_iq1_s,
};

constinit const RecordForm kIQ1MForm = {
    .codec = CodecId::kIQ1_M,
    .block = 256,
    .block_bytes = 56,
    .fields = kIQ1MFields,
    .planes = block_planes<256, 56>,
    .write_records = convert_records<56, to_record<kIQ1MMoves>>,
    .decode = decode_converted<56, from_record<kIQ1MMoves>>,
    .fill_row = fill_iq1_m,
};

} // namespace cortiq::formats
