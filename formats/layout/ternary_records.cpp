// Codecs of base-3 digits: TQ1_0, PTQ1_0, q1t. Two bits a weight would grow them, so records keep base 3, as the
// fractions of codec/ternary.h, but regroup the digits: digit s of byte j of dword u of "qs" belongs to weight 20u + 4s
// + j; what is left of a block stands in bytes of its own ("qr"), four neighbours each, digit s to weight 4k + s of the
// rest. TQ1_0's rest of 16 is a last dword with four digits a byte. Weights are digit - 1 scales, also for q1t, whose
// files number the levels 0, 1, -1. The overlay of q1t is not in the records (overlay_form.h).

#include "formats/codec/ternary.h"
#include "formats/layout/fill_blocks.h"
#include "formats/layout/overlay_form.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kTQ10Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 13}};
constexpr LayoutField kPTQ10Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 6}, {"qr", 26, 1, 2}};
constexpr LayoutField kQ1TFields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 1}, {"qr", 6, 1, 3}};

/// Dwords of 20 digits.
void digits_to_dwords(const uint8_t* digits, int dwords, uint8_t* out) {
  for (int u = 0; u < dwords; ++u, digits += 20)
    for (int j = 0; j < 4; ++j) {
      const int five[5] = {digits[j], digits[4 + j], digits[8 + j], digits[12 + j], digits[16 + j]};
      *out++ = ternary_byte(five);
    }
}
void dwords_to_digits(const uint8_t* dwords, int count, uint8_t* digits) {
  for (int u = 0; u < count; ++u, digits += 20)
    for (int j = 0; j < 4; ++j, ++dwords)
      for (int s = 0; s < 5; ++s)
        digits[4 * s + j] = static_cast<uint8_t>(ternary_digit(*dwords, s));
}

/// Bytes of four digits that stand `stride` apart, byte k's first at k * step.
void digits_to_bytes(const uint8_t* digits, int bytes, int step, int stride, uint8_t* out) {
  for (int k = 0; k < bytes; ++k, digits += step) {
    const int five[5] = {digits[0], digits[stride], digits[2 * stride], digits[3 * stride], 0};
    out[k] = ternary_byte(five);
  }
}
void bytes_to_digits(const uint8_t* from, int bytes, int step, int stride, uint8_t* digits) {
  for (int k = 0; k < bytes; ++k, digits += step)
    for (int s = 0; s < 4; ++s)
      digits[s * stride] = static_cast<uint8_t>(ternary_digit(from[k], s));
}

/// The file's runs of `bytes` bytes whose five digits stand `bytes` weights apart.
void run_to_digits(const uint8_t* run, int bytes, uint8_t* digits) {
  for (int k = 0; k < 5 * bytes; ++k)
    digits[k] = static_cast<uint8_t>(ternary_digit(run[k % bytes], k / bytes));
}
void digits_to_run(const uint8_t* digits, int bytes, uint8_t* run) {
  for (int k = 0; k < bytes; ++k) {
    const int five[5] = {digits[k], digits[k + bytes], digits[k + 2 * bytes], digits[k + 3 * bytes],
                         digits[k + 4 * bytes]};
    run[k] = ternary_byte(five);
  }
}

// File: runs of 32 and of 16 bytes, 4 bytes of four digits 4 apart, d.
void tq1_0_to_record(const uint8_t* block, uint8_t* record) {
  uint8_t digits[256];
  run_to_digits(block, 32, digits);
  run_to_digits(block + 32, 16, digits + 160);
  std::memcpy(record, block + 52, 2);
  digits_to_dwords(digits, 12, record + 2);
  std::memcpy(record + 50, block + 48, 4);
}
void tq1_0_from_record(const uint8_t* record, uint8_t* block) {
  uint8_t digits[256];
  dwords_to_digits(record + 2, 12, digits);
  digits_to_run(digits, 32, block);
  digits_to_run(digits + 160, 16, block + 32);
  std::memcpy(block + 48, record + 50, 4);
  std::memcpy(block + 52, record, 2);
}

// File: runs of 16 and of 8 bytes, 2 bytes of four digits 2 apart, d.
void ptq1_0_to_record(const uint8_t* block, uint8_t* record) {
  uint8_t digits[128];
  run_to_digits(block, 16, digits);
  run_to_digits(block + 16, 8, digits + 80);
  bytes_to_digits(block + 24, 2, 1, 2, digits + 120);
  std::memcpy(record, block + 26, 2);
  digits_to_dwords(digits, 6, record + 2);
  digits_to_bytes(digits + 120, 2, 4, 1, record + 26);
}
void ptq1_0_from_record(const uint8_t* record, uint8_t* block) {
  uint8_t digits[128];
  dwords_to_digits(record + 2, 6, digits);
  bytes_to_digits(record + 26, 2, 4, 1, digits + 120);
  digits_to_run(digits, 16, block);
  digits_to_run(digits + 80, 8, block + 16);
  digits_to_bytes(digits + 120, 2, 1, 2, block + 24);
  std::memcpy(block + 26, record, 2);
}

// File: d, 7 bytes of five digits that are neighbours, the last byte's only two. Level numbers 0, 1, 2 for 0, 1, -1.
void q1t_to_record(const uint8_t* tile, uint8_t* record) {
  uint8_t digits[32];
  for (int i = 0; i < 32; ++i)
    digits[i] = static_cast<uint8_t>((q1t_digit(tile[2 + i / 5], i % 5) + 1) % 3);
  std::memcpy(record, tile, 2);
  digits_to_dwords(digits, 1, record + 2);
  digits_to_bytes(digits + 20, 3, 4, 1, record + 6);
}
void q1t_from_record(const uint8_t* record, uint8_t* tile) {
  uint8_t digits[35] = {};
  dwords_to_digits(record + 2, 1, digits);
  bytes_to_digits(record + 6, 3, 4, 1, digits + 20);
  std::memcpy(tile, record, 2);
  for (int k = 0; k < 7; ++k) {
    int five[5] = {};
    for (int s = 0; s < 5 && 5 * k + s < 32; ++s)
      five[s] = (digits[5 * k + s] + 2) % 3;
    tile[2 + k] = q1t_byte(five);
  }
}

void decode_q1t(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunkBytes];
  uint8_t payload[kDecodeChunkBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b)
    q1t_from_record(records + 9 * b, payload + 9 * b);
  std::memset(payload + 9 * count, 0, 8); // the table of one row without entries
  codec_info(CodecId::kQ1T).decode_row(payload, 1, weights, 0, out);
}

// Of the three levels, which are about equally frequent in random bytes.
constexpr float kDeviation = 0.8165f;

constexpr RecordForm q1t_form() {
  RecordForm form = converted_form<32, 9, q1t_to_record, q1t_from_record>(CodecId::kQ1T, kQ1TFields,
                                                                          fill_scaled<32, 9, 0, kDeviation>);
  form.decode = decode_q1t;
  form.overlay = &kQ1TOverlay;
  return form;
}

} // namespace

constinit const RecordForm kTQ10Form = converted_form<256, 54, tq1_0_to_record, tq1_0_from_record>(
    CodecId::kTQ1_0, kTQ10Fields, fill_scaled<256, 54, 52, kDeviation>);
constinit const RecordForm kPTQ10Form = converted_form<128, 28, ptq1_0_to_record, ptq1_0_from_record>(
    CodecId::kPTQ1_0, kPTQ10Fields, fill_scaled<128, 28, 26, kDeviation>);
constinit const RecordForm kQ1TForm = q1t_form();

} // namespace cortiq::formats
