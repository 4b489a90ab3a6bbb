#pragma once

// Tensors for the layout tests: bytes without structure, and what a reference decode makes of them.

#include <algorithm>
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

/// Those of them that have row groups.
inline std::vector<const Codec*> row_group_codecs() {
  std::vector<const Codec*> codecs;
  for (const Codec* codec : weight_codecs())
    if (r16_format(*codec, 8 * codec->block).ok())
      codecs.push_back(codec);
  return codecs;
}

/// Fewest rows that a tensor of the codec has.
inline uint64_t least_rows(const Codec& codec) {
  return codec.id == CodecId::kBLR ? 8 : 1;
}

/// Row lengths that the codec permits: a single block, odd counts of blocks, more than one decode chunk.
inline std::vector<uint64_t> row_lengths(const Codec& codec) {
  const uint64_t block = codec.block;
  if (block == 1)
    return {1, 2, 3, 4, 5, 63, 129, 1023, 1025, 2050};
  return {block, 3 * block, 5 * block, 6 * block, 7 * block, 2048 + block, 4096};
}

inline void append_word(std::vector<uint8_t>& out, uint32_t word, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out.push_back(static_cast<uint8_t>(word >> (8 * i)));
}

/// A payload of random bytes: every code and scale occurs, infinities and NaN too. Where the payload describes itself,
/// with random bit widths, ranks and overlays, entries out of order and repeated among them.
inline std::vector<uint8_t> random_payload(const Codec& codec, uint64_t rows, uint64_t cols, uint32_t seed) {
  const StatusOr<uint64_t> size = codec.payload_bytes(codec, rows, cols);
  EXPECT_TRUE(size.ok()) << size.status().message();
  std::mt19937 random(seed);
  std::vector<uint8_t> payload;
  const auto bytes = [&](uint64_t count) {
    for (; count > 0; --count)
      payload.push_back(static_cast<uint8_t>(random()));
  };
  switch (size.ok() ? codec.id : CodecId::kU8) {
  case CodecId::kVBit:
  case CodecId::kVBitRO: {
    std::vector<uint32_t> ends = {0};
    for (uint64_t r = 0; r < rows; ++r) {
      constexpr uint8_t kWidths[] = {3, 4, 5, 6, 8};
      payload.push_back(kWidths[random() % 5]);
      ends.push_back(static_cast<uint32_t>(ends.back() + payload[r] * cols / 8));
    }
    bytes(rows * (cols / 32) * 2);
    for (const uint32_t end : ends)
      if (codec.id == CodecId::kVBitRO)
        append_word(payload, end, 4);
    bytes(ends.back());
    break;
  }
  case CodecId::kQ1S: {
    bytes(rows * (cols / 32) * 6);
    const uint32_t count = random() % 40;
    append_word(payload, count, 4);
    for (uint32_t e = 0; e < count; ++e) {
      append_word(payload, random() % (rows * cols + 5), 4);
      append_word(payload, random(), 2);
    }
    break;
  }
  case CodecId::kQ1T: {
    bytes(rows * (cols / 32) * 9);
    uint32_t total = 0;
    append_word(payload, 0, 4);
    for (uint64_t r = 0; r < rows; ++r)
      append_word(payload, total += random() % 8, 4);
    for (uint32_t e = 0; e < total; ++e) {
      append_word(payload, random() % cols, 2);
      append_word(payload, random(), 2);
    }
    break;
  }
  case CodecId::kBLR: {
    const uint32_t rank = std::min(rows, cols) >= 16 ? 16 : 8;
    payload = {0x4C, 1, 2, 0};
    for (const uint64_t word : {uint64_t{rank}, rows, cols})
      append_word(payload, static_cast<uint32_t>(word), 4);
    bytes(2 * (2 * (rows + cols + rank) + rows * rank / 8 + rank * cols / 8));
    break;
  }
  default:
    bytes(size.ok() ? *size : 0);
  }
  EXPECT_TRUE(check_payload(codec, payload, rows, cols, false).ok());
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
  const StatusOr<uint64_t> size = packed_payload_bytes(codec, layout, payload, source_rows, cols, row_map);
  EXPECT_TRUE(size.ok()) << size.status().message();
  std::vector<uint8_t> out(size.ok() ? *size : 0, 0xa5);
  const Status status = pack(codec, layout, payload, source_rows, cols, row_map, out);
  EXPECT_TRUE(status.ok()) << status.message();
  const Status sound = check_packed(codec, layout, out, row_map.empty() ? source_rows : row_map.size(), cols);
  EXPECT_TRUE(sound.ok()) << sound.message();
  return out;
}

} // namespace cortiq::formats
