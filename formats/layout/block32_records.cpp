// GGUF's blocks of 32. Q4_0, Q4_1, Q8_0 and IQ4_NL are records as they stand in the file; Q5_0 and Q5_1 get their fifth
// bits in the order in which a kernel meets the weights, four neighbours a dword.

#include "formats/layout/code_order.h"
#include "formats/layout/fill_blocks.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kQ40Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 4}};
constexpr LayoutField kQ41Fields[] = {{"d", 0, 2, 1}, {"m", 2, 2, 1}, {"qs", 4, 4, 4}};
constexpr LayoutField kQ50Fields[] = {{"d", 0, 2, 1}, {"qh", 2, 4, 1}, {"qs", 6, 4, 4}};
constexpr LayoutField kQ51Fields[] = {{"d", 0, 2, 1}, {"m", 2, 2, 1}, {"qh", 4, 4, 1}, {"qs", 8, 4, 4}};
constexpr LayoutField kQ80Fields[] = {{"d", 0, 2, 1}, {"q", 2, 4, 8}};

template <uint32_t kBytes, uint32_t kHigh, auto Permute>
void permute_high(const uint8_t* from, uint8_t* to) {
  std::memcpy(to, from, kBytes);
  store_u32(to + kHigh, Permute(load_u32(from + kHigh)));
}

/// A form whose fifth bits stand at byte kHigh.
template <uint32_t kBytes, uint32_t kHigh>
constexpr RecordForm five_bit_form(CodecId codec, std::span<const LayoutField> fields,
                                   decltype(RecordForm::fill_row) fill) {
  return converted_form<32, kBytes, permute_high<kBytes, kHigh, bits_to_record>,
                        permute_high<kBytes, kHigh, bits_from_record>>(codec, fields, fill);
}

constexpr uint16_t kNegative = 0x8000;

} // namespace

// The deviations of the weights at d = 1 are those of uniform codes alone, or of codes, d and m together.
constinit const RecordForm kQ40Form = copied_form<32, 18>(CodecId::kQ4_0, kQ40Fields, fill_scaled<32, 18, 0, 4.61f>);
constinit const RecordForm kQ41Form =
    copied_form<32, 20>(CodecId::kQ4_1, kQ41Fields, fill_with_minimum<32, 20, 4.8f, 7.5f, kNegative>);
constinit const RecordForm kQ50Form = five_bit_form<22, 2>(CodecId::kQ5_0, kQ50Fields, fill_scaled<32, 22, 0, 9.23f>);
constinit const RecordForm kQ51Form =
    five_bit_form<24, 4>(CodecId::kQ5_1, kQ51Fields, fill_with_minimum<32, 24, 9.63f, 15.5f, kNegative>);
constinit const RecordForm kQ80Form = copied_form<32, 34>(CodecId::kQ8_0, kQ80Fields, fill_scaled<32, 34, 0, 73.9f>);
constinit const RecordForm kIQ4NLForm =
    copied_form<32, 18>(CodecId::kIQ4_NL, kQ40Fields, fill_scaled<32, 18, 0, 67.2f>);

} // namespace cortiq::formats
