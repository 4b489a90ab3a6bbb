// q1: tiles of 32 weights: f16 scale, 32 sign bits, lowest first. A set bit is +scale, a clear one -scale.

#include "formats/codec/codec_rows.h"
#include "formats/codec/q1_tiles.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {

constinit const Codec kQ1Codec = cmf_blocks<32, 6, decode_q1_tile>(CodecId::kQ1, "q1", 12);

} // namespace cortiq::formats
