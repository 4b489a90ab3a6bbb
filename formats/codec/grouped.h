#pragma once

// A stack of experts as floats, for products outside of this project that take weights grouped and transposed.

#include <cstdint>
#include <span>

#include "formats/codec/codec.h"
#include "formats/status.h"

namespace cortiq::formats {

/// A stack of `experts` matrices of `n` rows and `k` columns, one behind the other in a payload.
struct GroupedShape {
  uint64_t experts, n, k;
};

/// Decodes expert number `expert` transposed: out[c * n + r] is weight c of its row r. `payload` has passed
/// check_payload() as experts * n rows of k; `out` has n * k floats.
void decode_transposed(const Codec& codec, std::span<const uint8_t> payload, const GroupedShape& shape, uint64_t expert,
                       std::span<float> out);

/// Decodes the whole stack to [experts][k][n]. Fails, naming both sizes, where the payload or `out` does not match the
/// shape.
Status decode_grouped(const Codec& codec, std::span<const uint8_t> payload, const GroupedShape& shape,
                      std::span<float> out);

} // namespace cortiq::formats
