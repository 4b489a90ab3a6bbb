#pragma once

// The rows of the codec table, one a file. Each is constant-initialised, so that the table can be gathered at any time.

#include "formats/codec/codec.h"

namespace cortiq::formats {

extern const Codec kBF16Codec;
extern const Codec kBLRCodec;
extern const Codec kBLRUCodec;
extern const Codec kBLRVCodec;
extern const Codec kF16Codec;
extern const Codec kF32Codec;
extern const Codec kFV5BCodec;
extern const Codec kFV5Codec;
extern const Codec kG80Codec;
extern const Codec kI2SCodec;
extern const Codec kI8SCodec;
extern const Codec kIQ1MCodec;
extern const Codec kIQ1SCodec;
extern const Codec kIQ2SCodec;
extern const Codec kIQ2XSCodec;
extern const Codec kIQ2XXSCodec;
extern const Codec kIQ3SCodec;
extern const Codec kIQ3XXSCodec;
extern const Codec kIQ4NLCodec;
extern const Codec kIQ4XSCodec;
extern const Codec kMXFP4Codec;
extern const Codec kMXFP4GGMLCodec;
extern const Codec kNVFP4Codec;
extern const Codec kPTQ10Codec;
extern const Codec kQ10Codec;
extern const Codec kQ1Codec;
extern const Codec kQ1GCodec;
extern const Codec kQ1SCodec;
extern const Codec kQ1TCodec;
extern const Codec kQ20Codec;
extern const Codec kQ20G128Codec;
extern const Codec kQ2KCodec;
extern const Codec kQ2TPAffineCodec;
extern const Codec kQ2TPCodec;
extern const Codec kQ3KCodec;
extern const Codec kQ40Codec;
extern const Codec kQ41Codec;
extern const Codec kQ4BlockCodec;
extern const Codec kQ4KCodec;
extern const Codec kQ4TPCodec;
extern const Codec kQ4TiledCodec;
extern const Codec kQ50Codec;
extern const Codec kQ51Codec;
extern const Codec kQ5KCodec;
extern const Codec kQ6KCodec;
extern const Codec kQ80Codec;
extern const Codec kQ82FCodec;
extern const Codec kQ8KCodec;
extern const Codec kQ8RowCodec;
extern const Codec kSTQ10Codec;
extern const Codec kTQ10Codec;
extern const Codec kTQ20Codec;
extern const Codec kU32Codec;
extern const Codec kU64Codec;
extern const Codec kU8Codec;
extern const Codec kVBitCodec;
extern const Codec kVBitROCodec;

} // namespace cortiq::formats
