// u64: raw little-endian tables, never weights.

#include "formats/codec/codec_rows.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {

constinit const Codec kU64Codec = raw_data(CodecId::kU64, "u64", 18, 8);

} // namespace cortiq::formats
