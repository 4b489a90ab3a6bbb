#pragma once

// Orders of one- and two-bit codes. "Weight order", in most files: the bits of a dword run through neighbouring weights
// from the lowest on. "Record order": weights 4s .. 4s + 3 stand at the same place of the four bytes of a dword, so
// that (dword >> s) & 0x01010101, or (dword >> 2s) & 0x03030303, gives their codes.

#include <cstdint>
#include <cstring>

#include "formats/codec/half.h"

namespace cortiq::formats {

/// One bit a weight: bit 4s + j of weight order is bit 8j + s of record order.
inline uint32_t bits_to_record(uint32_t bits) {
  uint32_t record = 0;
  for (int j = 0; j < 4; ++j) { // for each j, gather the eight bits that stand four apart
    uint32_t lane = bits >> j & 0x11111111u;
    lane = (lane | lane >> 3) & 0x03030303u;
    lane = (lane | lane >> 6) & 0x000f000fu;
    lane = (lane | lane >> 12) & 0xffu;
    record |= lane << (8 * j);
  }
  return record;
}

inline uint32_t bits_from_record(uint32_t record) {
  uint32_t bits = 0;
  for (int j = 0; j < 4; ++j) {
    uint32_t lane = record >> (8 * j) & 0xffu;
    lane = (lane | lane << 12) & 0x000f000fu;
    lane = (lane | lane << 6) & 0x03030303u;
    lane = (lane | lane << 3) & 0x11111111u;
    bits |= lane << j;
  }
  return bits;
}

/// Two bits a weight: pair 4s + j of weight order is pair 4j + s of record order. Its own inverse: a 4 x 4 transpose.
inline uint32_t transpose_pairs(uint32_t pairs) {
  const uint32_t near = (pairs ^ pairs >> 6) & 0x00cc00ccu;
  pairs ^= near ^ near << 6;
  const uint32_t far = (pairs ^ pairs >> 12) & 0x0000f0f0u;
  return pairs ^ far ^ far << 12;
}

/// `dwords` dwords through one of the functions above.
template <auto Convert>
void convert_dwords(const uint8_t* from, uint8_t* to, uint32_t dwords) {
  for (uint32_t u = 0; u < dwords; ++u)
    store_u32(to + 4 * u, Convert(load_u32(from + 4 * u)));
}

/// A block whose codes, kDwords dwords behind a head of kHead bytes, go through one of the functions above.
template <uint32_t kHead, uint32_t kDwords, auto kConvert>
void convert_codes(const uint8_t* from, uint8_t* to) {
  std::memcpy(to, from, kHead);
  convert_dwords<kConvert>(from + kHead, to + kHead, kDwords);
}

/// 128 two-bit codes in 32 bytes, weight 32j + l at bits shift(j) of byte l, to eight dwords of record order and back.
/// shift(j) is 2j, with kHighFirst 6 - 2j.
template <bool kHighFirst>
void strided_pairs_to_record(const uint8_t* bytes, uint8_t* record) {
  uint32_t dwords[8] = {};
  for (int j = 0; j < 4; ++j)
    for (int q = 0; q < 8; ++q) { // weights 32j + 4q .. + 3
      const uint32_t codes = load_u32(bytes + 4 * q) >> (kHighFirst ? 6 - 2 * j : 2 * j) & 0x03030303u;
      dwords[2 * j + q / 4] |= codes << (2 * (q % 4));
    }
  for (int u = 0; u < 8; ++u)
    store_u32(record + 4 * u, dwords[u]);
}

template <bool kHighFirst>
void strided_pairs_from_record(const uint8_t* record, uint8_t* bytes) {
  uint32_t dwords[8] = {};
  for (int j = 0; j < 4; ++j)
    for (int q = 0; q < 8; ++q) {
      const uint32_t codes = load_u32(record + 4 * (2 * j + q / 4)) >> (2 * (q % 4)) & 0x03030303u;
      dwords[q] |= codes << (kHighFirst ? 6 - 2 * j : 2 * j);
    }
  for (int q = 0; q < 8; ++q)
    store_u32(bytes + 4 * q, dwords[q]);
}

} // namespace cortiq::formats
