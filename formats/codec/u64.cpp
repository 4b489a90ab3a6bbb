// u64: raw little-endian tables, never weights.

#include "formats/codec/codec_rows.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {

constinit const Codec kU64Codec = {
    .id = CodecId::kU64,
    .name = "u64",
    .cmf_name = "u64",
    .gguf_name = "",
    .cmf_code = 18,
    .gguf_code = -1,
    .block = 1,
    .block_bytes = 8,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kNone,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = nullptr,
};

} // namespace cortiq::formats
