#pragma once

// The rows of the encoder table, one a file.

#include "formats/encode/encoder.h"

namespace cortiq::formats {

extern const Encoder kBF16Encoder;
extern const Encoder kF16Encoder;
extern const Encoder kF32Encoder;
extern const Encoder kMXFP4Encoder;
extern const Encoder kQ1Encoder;
extern const Encoder kQ1GEncoder;
extern const Encoder kQ1SEncoder;
extern const Encoder kQ1TEncoder;
extern const Encoder kQ2TPEncoder;
extern const Encoder kQ4BlockEncoder;
extern const Encoder kQ4TPEncoder;
extern const Encoder kQ4TiledEncoder;
extern const Encoder kQ82FEncoder;
extern const Encoder kQ8RowEncoder;
extern const Encoder kVBitEncoder;
extern const Encoder kVBitROEncoder;

} // namespace cortiq::formats
