// q4_block: the tensor as one flat run of groups of 32; nibbles of all groups (neighbouring weights share a byte, the
// first in the low half), then one f16 scale a group. w = (nibble - 8) * scale. Groups run over row ends.

#include <algorithm>

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kGroup = 32;
constexpr uint64_t kGroupBytes = 18;

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  if (rows == 0 || cols == 0)
    return check_block_shape(codec, rows, cols);
  const std::optional<uint64_t> weights = checked_mul(rows, cols);
  return size_or_overflow(codec, rows, cols, weights ? checked_mul(ceil_div(*weights, kGroup), kGroupBytes) : weights);
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint8_t* scales = payload + 16 * ceil_div(rows * cols, kGroup);
  const uint64_t end = (row + 1) * cols;
  for (uint64_t i = row * cols; i < end;) {
    const float scale = half_to_float(load_u16(scales + 2 * (i / kGroup)));
    const uint64_t group_end = std::min(end, (i / kGroup + 1) * kGroup);
    for (; i < group_end; ++i)
      *out++ = static_cast<float>((payload[i / 2] >> (i % 2 * 4) & 15) - 8) * scale;
  }
}

} // namespace

constinit const Codec kQ4BlockCodec = {
    .id = CodecId::kQ4Block,
    .name = "q4_block",
    .cmf_name = "q4_block",
    .gguf_name = "",
    .cmf_code = 4,
    .gguf_code = -1,
    .block = kGroup,
    .block_bytes = 0,
    .flat = true,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
