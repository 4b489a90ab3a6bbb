// u8: raw little-endian tables, never weights.

#include "formats/codec/codec_rows.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {

constinit const Codec kU8Codec = {
    .id = CodecId::kU8,
    .name = "u8",
    .cmf_name = "u8",
    .gguf_name = "",
    .cmf_code = 6,
    .gguf_code = -1,
    .block = 1,
    .block_bytes = 1,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kNone,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = nullptr,
};

} // namespace cortiq::formats
