#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "formats/codec/grouped.h"
#include "formats/status.h"

namespace cortiq::inspect {

/// Decodes a rows x cols payload row by row into `path`: little-endian float32, row-major.
Status write_decoded(const formats::Codec& codec, const uint8_t* payload, uint64_t rows, uint64_t cols,
                     const std::string& path);

/// Decodes a stack of experts into `path`: little-endian float32, [experts][k][n].
Status write_grouped(const formats::Codec& codec, std::span<const uint8_t> payload, const formats::GroupedShape& shape,
                     const std::string& path);

} // namespace cortiq::inspect
