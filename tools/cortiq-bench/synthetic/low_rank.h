#pragma once

// Payloads of blr, whose size is theirs to choose: synthetic matrices have one bit a weight, as its converters aim at.

#include <cstdint>
#include <vector>

#include "formats/status.h"

namespace cortiq::bench {

/// Bytes of a blr matrix of one bit a weight; an error where its shape is none of blr's.
StatusOr<uint64_t> low_rank_bytes(uint64_t rows, uint64_t cols);

/// Its payload, of random signs.
std::vector<uint8_t> low_rank_payload(uint64_t rows, uint64_t cols, uint64_t seed);

} // namespace cortiq::bench
