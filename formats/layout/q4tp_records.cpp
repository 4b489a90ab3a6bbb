// q4tp: the header has the ladder's first rung and its step as floats (kernels need no exp2) and the rung codes, six to
// a dword; records are 32 nibbles, brought from pairs to halves.

#include <algorithm>

#include "formats/checked_math.h"
#include "formats/codec/q4tp_ladder.h"
#include "formats/layout/nibble_order.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr uint32_t kBlock = 32;
constexpr uint32_t kBytes = 16;
constexpr uint32_t kCodesPerWord = 6;
constexpr uint32_t kCodesOffset = 8;
constexpr LayoutField kHeader[] = {{"lo", 0, 4, 1}, {"step", 4, 4, 1}};
constexpr LayoutField kFields[] = {{"qs", 0, 4, 4}};

// lo around -8.766 in steps of 2^-7 and a step of 0.05: with uniform codes the rungs have a root mean square of
// 0.02 / 4.61, the deviation of a uniform nibble being 4.61.
constexpr HalfRange kFillLo = {0xc85a, 0xc86a};
constexpr uint16_t kFillStep = 0x2a66;

uint64_t code_bytes(uint64_t blocks) {
  return ceil_div(5 * blocks, 8);
}

PlaneSizes planes(uint64_t cols) {
  return {.row_bytes = {cols / kBlock * 16, 4, code_bytes(cols / kBlock)}};
}

void write_header(const RowPlanes& row, uint64_t cols, uint8_t* out) {
  store_u32(out, std::bit_cast<uint32_t>(q4tp_exp2(load_u16(row.plane[1]))));
  store_u32(out + 4, std::bit_cast<uint32_t>(q4tp_exp2(load_u16(row.plane[1] + 2))));
  const uint64_t blocks = cols / kBlock;
  const uint64_t stream_bytes = code_bytes(blocks);
  // Codes follow each other without gaps from the lowest bit on, so six of them are 30 consecutive bits.
  for (uint64_t word = 0; word * kCodesPerWord < blocks; ++word) {
    const uint64_t codes = std::min<uint64_t>(kCodesPerWord, blocks - word * kCodesPerWord);
    const uint64_t bit = word * kCodesPerWord * 5;
    uint64_t bits = 0;
    std::memcpy(&bits, row.plane[2] + bit / 8, std::min<uint64_t>(8, stream_bytes - bit / 8));
    store_u32(out + kCodesOffset + 4 * word, static_cast<uint32_t>(bits >> (bit % 8) & ((1u << (5 * codes)) - 1)));
  }
}

void write_records(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  for (uint64_t b = 0; b < count; ++b)
    pairs_to_halves(row.plane[0] + kBytes * (first + b), out + kBytes * b);
}

void decode(const PackedRow& row, uint64_t first, uint64_t count, uint64_t, float* out) {
  uint8_t records[kDecodeChunk / kBlock * kBytes];
  uint8_t words[4 * (kDecodeChunk / kBlock / kCodesPerWord + 2)];
  uint8_t params[8];
  row.read_records(first, count, records);
  row.read_header(0, 4, 2, params);
  const uint64_t first_word = first / kCodesPerWord;
  const uint64_t word_count = (first + count - 1) / kCodesPerWord - first_word + 1;
  row.read_header(static_cast<uint32_t>(kCodesOffset + 4 * first_word), 4, word_count, words);
  const Q4TPLadder ladder(std::bit_cast<float>(load_u32(params)), std::bit_cast<float>(load_u32(params + 4)));
  for (uint64_t b = 0; b < count; ++b, out += kBlock) {
    const uint64_t block = first + b;
    const uint32_t word = load_u32(words + 4 * (block / kCodesPerWord - first_word));
    const float scale = ladder.rung[word >> (5 * (block % kCodesPerWord)) & 31];
    const uint8_t* codes = records + kBytes * b;
    for (int i = 0; i < 16; ++i) {
      out[i] = static_cast<float>((codes[i] & 15) - 8) * scale;
      out[16 + i] = static_cast<float>((codes[i] >> 4) - 8) * scale;
    }
  }
}

void fill_row(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  random.bytes(row.plane[0], cols / kBlock * 16);
  store_u16(row.plane[1], random.half_in(kFillLo));
  store_u16(row.plane[1] + 2, kFillStep);
  const uint64_t blocks = cols / kBlock;
  random.bytes(row.plane[2], code_bytes(blocks));
  if (5 * blocks % 8 != 0) // the bits that fill the last byte are zero in files
    row.plane[2][code_bytes(blocks) - 1] &= static_cast<uint8_t>((1u << (5 * blocks % 8)) - 1);
}

} // namespace

constinit const RecordForm kQ4TPForm = {
    .codec = CodecId::kQ4TP,
    .block = kBlock,
    .block_bytes = kBytes,
    .header = kHeader,
    .fields = kFields,
    .blocks_per_code_word = kCodesPerWord,
    .planes = planes,
    .write_header = write_header,
    .write_records = write_records,
    .decode = decode,
    .fill_row = fill_row,
};

} // namespace cortiq::formats
