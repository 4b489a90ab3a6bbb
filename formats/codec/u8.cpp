// u8: raw little-endian tables, never weights.

#include "formats/codec/codec_rows.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {

constinit const Codec kU8Codec = raw_data(CodecId::kU8, "u8", 6, 1);

} // namespace cortiq::formats
