// bf16: plain little-endian numbers.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint8_t* values = payload + 2 * row * cols;
  for (uint64_t i = 0; i < cols; ++i)
    out[i] = bfloat_to_float(load_u16(values + 2 * i));
}

} // namespace

constinit const Codec kBF16Codec = {
    .id = CodecId::kBF16,
    .name = "bf16",
    .cmf_name = "bf16",
    .gguf_name = "BF16",
    .cmf_code = 2,
    .gguf_code = 30,
    .block = 1,
    .block_bytes = 2,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kFloat,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
