// vbit, vbit_ro: a bit width for every row, f16 scales (one for 32 weights), then the rows' codes as bit streams,
// highest bit first. vbit_ro has a table of row offsets before the streams. w = (code - level) * scale, level = 2^(bits
// - 1) - 1.

#include <numeric>
#include <string>

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kLeastBits = 3;

/// Bytes in front of the streams. Rows are whole groups of 32, so that a row's stream has cols / 8 bytes a bit.
std::optional<uint64_t> head_bytes(bool offsets, uint64_t rows, uint64_t cols) {
  const std::optional<uint64_t> head = checked_mul(rows, checked_add(checked_mul(cols / 32, 2), 1));
  return offsets ? checked_add(head, checked_mul(checked_add(rows, 1), 4)) : head;
}

template <bool kOffsets>
StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  const std::optional<uint64_t> streams = checked_mul(rows, checked_mul(cols / 8, kLeastBits));
  return size_or_overflow(codec, rows, cols, checked_add(head_bytes(kOffsets, rows, cols), streams));
}

template <bool kOffsets>
Status validate(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, bool strict) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  const std::optional<uint64_t> head = head_bytes(kOffsets, rows, cols);
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t streams, size_or_overflow(codec, rows, cols, head));
  CORTIQ_RETURN_IF_ERROR(expect_at_least(codec, payload.size(), streams, rows, cols));
  std::optional<uint64_t> at = 0;
  for (uint64_t r = 0; r <= rows; ++r) {
    if (const uint8_t* table = payload.data() + streams - 4 * (rows + 1); kOffsets && load_u32(table + 4 * r) != *at)
      return invalid("states the row offset " + std::to_string(load_u32(table + 4 * r)) + " for row " +
                     std::to_string(r) + ", expected " + std::to_string(*at));
    if (r == rows)
      break;
    const uint8_t bits = payload[r];
    if (bits < kLeastBits || bits > 8 || bits == 7)
      return invalid("has the row bit width " + std::to_string(bits) + " in row " + std::to_string(r) +
                     ", expected 3, 4, 5, 6 or 8");
    at = checked_add(at, checked_mul(cols / 8, bits));
    if (!at)
      return size_or_overflow(codec, rows, cols, at).status();
  }
  const std::optional<uint64_t> total = checked_add(streams, at);
  return total ? expect_size(codec, payload.size(), *total, rows, cols)
               : size_or_overflow(codec, rows, cols, total).status();
}

void decode_stream(const uint8_t* stream, uint32_t bits, const uint8_t* scales, uint64_t cols, float* out) {
  const int level = (1 << (bits - 1)) - 1;
  uint32_t buffer = 0;
  uint32_t held = 0;
  for (uint64_t i = 0; i < cols; ++i) {
    for (; held < bits; held += 8)
      buffer = buffer << 8 | *stream++;
    held -= bits;
    const int code = static_cast<int>(buffer >> held & ((1u << bits) - 1));
    out[i] = static_cast<float>(code - level) * half_to_float(load_u16(scales + i / 32 * 2));
  }
}

template <bool kOffsets>
void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint8_t* scales = payload + rows + row * (cols / 32) * 2;
  const uint64_t before = std::accumulate(payload, payload + row, uint64_t{0});
  const uint8_t* streams = payload + *head_bytes(kOffsets, rows, cols);
  decode_stream(streams + before * (cols / 8), payload[row], scales, cols, out);
}

} // namespace

constinit const Codec kVBitCodec = of_variable_size(
    cmf_planes(CodecId::kVBit, "vbit", 8, 32, DotForm::kAffineInt, payload_bytes<false>, decode_row<false>),
    validate<false>);

constinit const Codec kVBitROCodec = of_variable_size(
    cmf_planes(CodecId::kVBitRO, "vbit_ro", 10, 32, DotForm::kAffineInt, payload_bytes<true>, decode_row<true>),
    validate<true>);

} // namespace cortiq::formats
