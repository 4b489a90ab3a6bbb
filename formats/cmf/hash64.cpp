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

std::optional<uint64_t> parse_hash64(std::string_view text) {
  if (text.size() != 16)
    return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0)
      return std::nullopt;
    value = value << 4 | static_cast<uint64_t>(digit);
  }
  return value;
}

} // namespace cortiq::formats
