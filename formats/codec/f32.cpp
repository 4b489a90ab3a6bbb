// f32: plain little-endian numbers.

#include <cstring>

#include "formats/codec/codec_rows.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  if (cols != 0)
    std::memcpy(out, payload + 4 * row * cols, 4 * cols);
}

} // namespace

constinit const Codec kF32Codec = {
    .id = CodecId::kF32,
    .name = "f32",
    .cmf_name = "f32",
    .gguf_name = "F32",
    .cmf_code = 0,
    .gguf_code = 0,
    .block = 1,
    .block_bytes = 4,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kFloat,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
