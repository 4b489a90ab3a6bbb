// u32: raw little-endian tables, never weights.

#include "formats/codec/codec_rows.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {

constinit const Codec kU32Codec = raw_data(CodecId::kU32, "u32", 17, 4);

} // namespace cortiq::formats
