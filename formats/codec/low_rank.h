#pragma once

// blr payloads taken apart. Each path is a product of two sign matrices with scales, and those are codecs of their own,
// which artifacts hold and kernels read (blr_factors.cpp):
//
//   blr_v   [rank x cols]   w(k, j) = l(k) V(k, j) g(j)
//   blr_u   [rows x rank]   w(i, k) = h(i) U(i, k)
//   W = sum over paths of blr_u * blr_v

#include <cstdint>
#include <span>
#include <vector>

#include "formats/codec/codec.h"
#include "formats/status.h"

namespace cortiq::formats {

/// What the header of a blr payload says.
struct LowRankShape {
  uint64_t paths; ///< 1 or 2
  uint64_t rank;
  uint64_t rows, cols; ///< of the whole matrix
};

/// Bytes of one path.
inline uint64_t low_rank_path_bytes(const LowRankShape& shape) {
  return 2 * (shape.rows + shape.cols + shape.rank) + shape.rows * (shape.rank / 8) + shape.rank * (shape.cols / 8);
}

inline constexpr uint64_t kLowRankHeaderBytes = 16;

/// Reads the header and holds header and size against the codec's rules.
StatusOr<LowRankShape> read_low_rank(std::span<const uint8_t> payload);

/// The payload of one factor: `factor` is kBLRU or kBLRV, `path` counts from 0. Fails as read_low_rank() does, or when
/// there is no such path.
StatusOr<std::vector<uint8_t>> low_rank_factor(std::span<const uint8_t> payload, CodecId factor, uint64_t path);

} // namespace cortiq::formats
