// f16: plain little-endian numbers.

#include "formats/codec/block_decode.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_number(const uint8_t* number, float* out) {
  *out = half_to_float(load_u16(number));
}

} // namespace

constinit const Codec kF16Codec = {
    .id = CodecId::kF16,
    .name = "f16",
    .cmf_name = "f16",
    .gguf_name = "F16",
    .cmf_code = 1,
    .gguf_code = 1,
    .block = 1,
    .block_bytes = 2,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kFloat,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_blocks<1, 2, decode_number>,
};

} // namespace cortiq::formats
