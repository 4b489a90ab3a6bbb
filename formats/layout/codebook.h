#pragma once

// Codebooks of the iq codecs in the form that kPlanes has them in front of a tensor's planes: 16 bits an entry, a code
// of two bits (iq2: 8, 25, 43; iq1: -1, 0, 1) or three (iq3_xxs: 4, 12 … 52, 62; iq3_s: 1, 3 … 15) for each of its
// bytes, the first in the lowest. A processor whose lanes look up different entries wants them in its own fast memory,
// and shaders have no better way to come by a table than the buffer they read anyway.

#include <cstdint>
#include <vector>

#include "formats/codec/codec.h"

namespace cortiq::formats {

/// The table of `codec`; empty for codecs without one. An even number of entries.
std::vector<uint16_t> codebook(CodecId codec);

/// Bytes of codebook(), a multiple of 16.
uint64_t codebook_bytes(CodecId codec);

} // namespace cortiq::formats
