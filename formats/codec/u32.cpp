// u32: raw little-endian tables, never weights.

#include "formats/codec/codec_rows.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {

constinit const Codec kU32Codec = {
    .id = CodecId::kU32,
    .name = "u32",
    .cmf_name = "u32",
    .gguf_name = "",
    .cmf_code = 17,
    .gguf_code = -1,
    .block = 1,
    .block_bytes = 4,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kNone,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = nullptr,
};

} // namespace cortiq::formats
