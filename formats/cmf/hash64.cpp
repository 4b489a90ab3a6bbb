#include "formats/cmf/hash64.h"

#include <bit>
#include <cstring>

namespace cortiq::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "words are loaded in the file's byte order");

constexpr uint64_t kSalt = 0x9E3779B97F4A7C15;

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCD;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53;
  return x ^ (x >> 33);
}

} // namespace

uint64_t hash64(std::span<const uint8_t> bytes) {
  const size_t words = bytes.size() / 8;
  const size_t tail = bytes.size() % 8;
  uint64_t sum = 0;
  for (size_t i = 0; i < words; ++i) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + 8 * i, 8);
    sum ^= mix(word) ^ (i * kSalt);
  }
  if (tail != 0) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + 8 * words, tail);
    sum ^= mix(word) ^ (words * kSalt);
  }
  return mix(sum ^ bytes.size());
}

} // namespace cortiq::formats
