// q1: tiles of 32 weights: f16 scale, 32 sign bits, lowest first. A set bit is +scale, a clear one -scale.

#include "formats/codec/block_decode.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/q1_tiles.h"

namespace cortiq::formats {

constinit const Codec kQ1Codec = {
    .id = CodecId::kQ1,
    .name = "q1",
    .cmf_name = "q1",
    .gguf_name = "",
    .cmf_code = 12,
    .gguf_code = -1,
    .block = 32,
    .block_bytes = 6,
    .flat = false,
    .needs_matrix = true,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_blocks<32, 6, decode_q1_tile>,
};

} // namespace cortiq::formats
