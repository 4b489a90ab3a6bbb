// IQ4_XS as it stands in the file, and the codebook codecs with their parts in dwords: grid indices, signs and scales
// are the file's bytes, so that a lane takes its own with one shift and one mask.

#include "formats/layout/byte_moves.h"
#include "formats/layout/fill_blocks.h"
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

constexpr Move kIQ2XSMoves[] = {{0, 0, 2}, {66, 2, 8}, {2, 10, 64}};
constexpr Move kIQ2SMoves[] = {{0, 0, 2}, {74, 2, 8}, {66, 10, 8}, {2, 18, 64}};
constexpr Move kIQ3XXSMoves[] = {{0, 0, 2}, {66, 2, 32}, {2, 34, 64}};
constexpr Move kIQ3SMoves[] = {{0, 0, 2}, {106, 2, 4}, {66, 6, 40}, {2, 46, 64}};
constexpr Move kIQ1SMoves[] = {{0, 0, 2}, {34, 2, 16}, {2, 18, 32}};
constexpr Move kIQ1MMoves[] = {{48, 0, 8}, {32, 8, 16}, {0, 24, 32}};

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

template <uint32_t kBytes, auto& kMoves>
constexpr RecordForm moved_form(CodecId codec, std::span<const LayoutField> fields,
                                decltype(RecordForm::fill_row) fill) {
  return converted_form<256, kBytes, move_to_record<kMoves>, move_from_record<kMoves>>(codec, fields, fill);
}

} // namespace

constinit const RecordForm kIQ4XSForm =
    copied_form<256, 136>(CodecId::kIQ4_XS, kIQ4XSFields, fill_scaled<256, 136, 0, 1246.0f>);
constinit const RecordForm kIQ2XXSForm = converted_form<256, 66, iq2_xxs_to_record, iq2_xxs_from_record>(
    CodecId::kIQ2_XXS, kIQ2XXSFields, fill_scaled<256, 66, 0, 53.36f>);
constinit const RecordForm kIQ2XSForm =
    moved_form<74, kIQ2XSMoves>(CodecId::kIQ2_XS, kIQ2XSFields, fill_scaled<256, 74, 0, 55.9f>);
constinit const RecordForm kIQ2SForm =
    moved_form<82, kIQ2SMoves>(CodecId::kIQ2_S, kIQ2SFields, fill_scaled<256, 82, 0, 56.39f>);
constinit const RecordForm kIQ3XXSForm =
    moved_form<98, kIQ3XXSMoves>(CodecId::kIQ3_XXS, kIQ3XXSFields, fill_scaled<256, 98, 0, 142.4f>);
constinit const RecordForm kIQ3SForm =
    moved_form<110, kIQ3SMoves>(CodecId::kIQ3_S, kIQ3SFields, fill_scaled<256, 110, 0, 140.2f>);
constinit const RecordForm kIQ1SForm =
    moved_form<50, kIQ1SMoves>(CodecId::kIQ1_S, kIQ1SFields, fill_scaled<256, 50, 0, 7.2f>);
constinit const RecordForm kIQ1MForm = moved_form<56, kIQ1MMoves>(CodecId::kIQ1_M, kIQ1MFields, fill_iq1_m);

} // namespace cortiq::formats
