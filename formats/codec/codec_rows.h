#pragma once

// The rows of the codec table, one a file. Each is constant-initialised, so that the table can be gathered at any time.

#include "formats/codec/codec.h"

namespace cortiq::formats {

extern const Codec kBF16Codec;
extern const Codec kF16Codec;
extern const Codec kF32Codec;
extern const Codec kIQ4NLCodec;
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
extern const Codec kQ8RowCodec;
extern const Codec kU32Codec;
extern const Codec kU64Codec;
extern const Codec kU8Codec;

} // namespace cortiq::formats
