// q4tp, q2tp: the header has the ladder's first rung and its step as floats (kernels need no exp2) and the rung codes,
// six to a dword; records are 32 codes: nibbles, brought from pairs to halves, or pairs of bits in record order.

#include <algorithm>

#include "formats/codec/ladder_planes.h"
#include "formats/codec/q4tp_ladder.h"
#include "formats/layout/code_order.h"
#include "formats/layout/fill_codes.h"
#include "formats/layout/nibble_order.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr uint32_t kBlock = 32;
constexpr uint32_t kQ4Bytes = 16;
constexpr uint32_t kQ2Bytes = 8;
constexpr uint32_t kCodesPerWord = 6;
constexpr uint32_t kCodesOffset = 8;
constexpr LayoutField kHeader[] = {{"lo", 0, 4, 1}, {"step", 4, 4, 1}};
constexpr LayoutField kQ4Fields[] = {{"qs", 0, 4, 4}};
constexpr LayoutField kQ2Fields[] = {{"qs", 0, 4, 2}};

// Ladders in steps of 2^0.05, lo in steps of the f16. With uniform codes the rungs of q4tp have a root mean square of
// 0.02 / 4.61 around lo = -8.766, 4.61 being the deviation of a uniform nibble; q2tp's deviations are 1.118 (levels
// -1.5 to 1.5) and 0.7071 (affine: levels -1, 0, 1), and its rung 0 is zero.
constexpr HalfRange kQ4FillLo = {0xc85a, 0xc86a};
constexpr HalfRange kQ2FillLo = {0xc6a4, 0xc6b4};
constexpr HalfRange kQ2AffineFillLo = {0xc5fa, 0xc60a};
constexpr uint16_t kFillStep = 0x2a66;

template <uint32_t kBytes>
PlaneSizes planes(uint64_t cols) {
  return {.row_bytes = {cols / kBlock * kBytes, 4, rung_bytes(cols / kBlock)}};
}

template <auto kExp2>
void write_header(const RowPlanes& row, uint64_t cols, uint8_t* out) {
  store_u32(out, std::bit_cast<uint32_t>(kExp2(load_u16(row.plane[1]))));
  store_u32(out + 4, std::bit_cast<uint32_t>(kExp2(load_u16(row.plane[1] + 2))));
  const uint64_t blocks = cols / kBlock;
  const uint64_t stream_bytes = rung_bytes(blocks);
  // Codes follow each other without gaps from the lowest bit on, so six of them are 30 consecutive bits.
  for (uint64_t word = 0; word * kCodesPerWord < blocks; ++word) {
    const uint64_t codes = std::min<uint64_t>(kCodesPerWord, blocks - word * kCodesPerWord);
    const uint64_t bit = word * kCodesPerWord * 5;
    uint64_t bits = 0;
    std::memcpy(&bits, row.plane[2] + bit / 8, std::min<uint64_t>(8, stream_bytes - bit / 8));
    store_u32(out + kCodesOffset + 4 * word, static_cast<uint32_t>(bits >> (bit % 8) & ((1u << (5 * codes)) - 1)));
  }
}

void write_q4_records(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  for (uint64_t b = 0; b < count; ++b)
    pairs_to_halves(row.plane[0] + kQ4Bytes * (first + b), out + kQ4Bytes * b);
}

void write_q2_records(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  convert_dwords<transpose_pairs>(row.plane[0] + kQ2Bytes * first, out, static_cast<uint32_t>(2 * count));
}

/// The header of a row, as far as some of its blocks need it.
class RowScales {
public:
  RowScales(const PackedRow& row, uint64_t first, uint64_t count)
      : ladder_(header_float(row, 0), header_float(row, 4)), first_word_(first / kCodesPerWord) {
    const uint64_t words = (first + count - 1) / kCodesPerWord - first_word_ + 1;
    row.read_header(static_cast<uint32_t>(kCodesOffset + 4 * first_word_), 4, words, words_);
  }

  const Q4TPLadder& ladder() const { return ladder_; }
  uint32_t code(uint64_t block) const {
    return load_u32(words_ + 4 * (block / kCodesPerWord - first_word_)) >> (5 * (block % kCodesPerWord)) & 31;
  }

private:
  static float header_float(const PackedRow& row, uint32_t offset) {
    uint8_t bytes[4];
    row.read_header(offset, 4, 1, bytes);
    return std::bit_cast<float>(load_u32(bytes));
  }

  Q4TPLadder ladder_;
  uint64_t first_word_;
  uint8_t words_[4 * (kDecodeChunk / kBlock / kCodesPerWord + 2)];
};

void decode_q4(const PackedRow& row, uint64_t first, uint64_t count, uint64_t, float* out) {
  uint8_t records[kDecodeChunk / kBlock * kQ4Bytes];
  row.read_records(first, count, records);
  const RowScales scales(row, first, count);
  for (uint64_t b = 0; b < count; ++b, out += kBlock) {
    const float scale = scales.ladder().rung[scales.code(first + b)];
    const uint8_t* codes = records + kQ4Bytes * b;
    for (int i = 0; i < 16; ++i) {
      out[i] = static_cast<float>((codes[i] & 15) - 8) * scale;
      out[16 + i] = static_cast<float>((codes[i] >> 4) - 8) * scale;
    }
  }
}

/// `kTwiceZero` is twice the code whose weight would be 0.
template <int kTwiceZero>
void decode_q2(const PackedRow& row, uint64_t first, uint64_t count, uint64_t, float* out) {
  constexpr float kZero = 0.5f * kTwiceZero;
  uint8_t records[kDecodeChunk / kBlock * kQ2Bytes];
  row.read_records(first, count, records);
  const RowScales scales(row, first, count);
  for (uint64_t b = 0; b < count; ++b, out += kBlock) {
    const uint32_t rung = scales.code(first + b);
    const float scale = rung == 0 ? 0.0f : scales.ladder().rung[rung - 1];
    for (int i = 0; i < 32; ++i) {
      const uint32_t dword = load_u32(records + kQ2Bytes * b + i / 16 * 4);
      const uint32_t code = dword >> (8 * (i % 4) + 2 * (i % 16 / 4)) & 3;
      out[i] = (static_cast<float>(code) - kZero) * scale;
    }
  }
}

template <uint32_t kBytes>
void fill(RandomStream& random, uint64_t cols, const MutableRowPlanes& row, HalfRange lo) {
  random.bytes(row.plane[0], cols / kBlock * kBytes);
  store_u16(row.plane[1], random.half_in(lo));
  store_u16(row.plane[1] + 2, kFillStep);
  const uint64_t blocks = cols / kBlock;
  random.bytes(row.plane[2], rung_bytes(blocks));
  if (5 * blocks % 8 != 0) // the bits that fill the last byte are zero in files
    row.plane[2][rung_bytes(blocks) - 1] &= static_cast<uint8_t>((1u << (5 * blocks % 8)) - 1);
}

void fill_q4(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill<kQ4Bytes>(random, cols, row, kQ4FillLo);
}
void fill_q2(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill<kQ2Bytes>(random, cols, row, kQ2FillLo);
}
void fill_q2_affine(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill<kQ2Bytes>(random, cols, row, kQ2AffineFillLo);
  make_ternary(row.plane[0], static_cast<uint32_t>(cols / 16));
}

/// What q4tp and q2tp differ in are the arguments.
template <uint32_t kBytes>
constexpr RecordForm ladder_form(CodecId codec, std::span<const LayoutField> fields,
                                 decltype(RecordForm::write_header) header, decltype(RecordForm::write_records) records,
                                 decltype(RecordForm::decode) decode, decltype(RecordForm::fill_row) fill) {
  RecordForm form = block_form<kBlock, kBytes>(codec, fields, records, decode, fill);
  form.header = kHeader;
  form.blocks_per_code_word = kCodesPerWord;
  form.planes = planes<kBytes>;
  form.write_header = header;
  return form;
}

} // namespace

constinit const RecordForm kQ4TPForm =
    ladder_form<kQ4Bytes>(CodecId::kQ4TP, kQ4Fields, write_header<q4tp_row_exp2>, write_q4_records, decode_q4, fill_q4);
constinit const RecordForm kQ2TPForm =
    ladder_form<kQ2Bytes>(CodecId::kQ2TP, kQ2Fields, write_header<q4tp_exp2>, write_q2_records, decode_q2<3>, fill_q2);
constinit const RecordForm kQ2TPAffineForm = ladder_form<kQ2Bytes>(
    CodecId::kQ2TPAffine, kQ2Fields, write_header<q4tp_exp2>, write_q2_records, decode_q2<2>, fill_q2_affine);

} // namespace cortiq::formats
