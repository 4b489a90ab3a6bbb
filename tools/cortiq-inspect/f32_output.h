#pragma once

#include <cstdint>
#include <string>

#include "formats/codec/codec.h"
#include "formats/status.h"

namespace cortiq::inspect {

/// Decodes a rows x cols payload row by row into `path`: little-endian float32, row-major.
Status write_decoded(const formats::Codec& codec, const uint8_t* payload, uint64_t rows, uint64_t cols,
                     const std::string& path);

} // namespace cortiq::inspect
