#pragma once

// Tensors for the layout tests: bytes without structure, and what a reference decode makes of them.

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/codec/codec.h"
#include "formats/layout/layout.h"

namespace cortiq::formats {

/// Codecs that have weights.
inline std::vector<const Codec*> weight_codecs() {
  std::vector<const Codec*> codecs;
  for (const Codec& codec : codec_table())
    if (codec.form != DotForm::kNone)
      codecs.push_back(&codec);
  return codecs;
}

/// Row lengths that the codec permits: a single block, odd counts of blocks, more than one decode chunk.
inline std::vector<uint64_t> row_lengths(const Codec& codec) {
  const uint64_t block = codec.block;
  if (block == 1)
    return {1, 2, 3, 4, 5, 63, 129, 1023, 1025, 2050};
  return {block, 3 * block, 5 * block, 6 * block, 7 * block, 2048 + block, 4096};
}

/// A payload of random bytes: every code and scale occurs, infinities and NaN too.
inline std::vector<uint8_t> random_payload(const Codec& codec, uint64_t rows, uint64_t cols, uint32_t seed) {
  const StatusOr<uint64_t> size = codec.payload_bytes(codec, rows, cols);
  EXPECT_TRUE(size.ok()) << size.status().message();
  std::vector<uint8_t> payload(size.ok() ? *size : 0);
  std::mt19937 random(seed);
  for (uint8_t& byte : payload)
    byte = static_cast<uint8_t>(random());
  return payload;
}

inline std::vector<uint32_t> float_bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    bits[i] = std::bit_cast<uint32_t>(values[i]);
  return bits;
}

inline std::vector<uint32_t> reference_row(const Codec& codec, const std::vector<uint8_t>& payload, uint64_t rows,
                                           uint64_t cols, uint64_t row) {
  std::vector<float> out(cols);
  codec.decode_row(payload.data(), rows, cols, row, out.data());
  return float_bits(out);
}

inline std::vector<uint8_t> packed(const Codec& codec, LayoutId layout, const std::vector<uint8_t>& payload,
                                   uint64_t source_rows, uint64_t cols, const std::vector<uint32_t>& row_map = {}) {
  const StatusOr<uint64_t> size = packed_bytes(codec, layout, row_map.empty() ? source_rows : row_map.size(), cols);
  EXPECT_TRUE(size.ok()) << size.status().message();
  std::vector<uint8_t> out(size.ok() ? *size : 0, 0xa5);
  const Status status = pack(codec, layout, payload, source_rows, cols, row_map, out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

} // namespace cortiq::formats
