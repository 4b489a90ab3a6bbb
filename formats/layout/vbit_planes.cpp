// vbit, vbit_ro as a GPU reads them. The codes of a group of 32 take as many words of 32 bits as a code has bits, so a
// row's groups stand at multiples of its width. Planes, each from a multiple of 16 bytes on: of every row the word with
// which its codes begin, and its bits a code; f16 scales, a group each; the codes, the first one in a word's highest
// bits.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "formats/checked_math.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/layout/record_form.h"
#include "formats/layout/stream_form.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kLeastBits = 3, kMostBits = 8;
constexpr uint64_t kAlignment = 16;

/// Where planes stand; nothing for sizes beyond any file's.
struct Places {
  uint64_t scales, codes;
};
std::optional<Places> places_of(uint64_t rows, uint64_t cols) {
  const auto aligned = [](std::optional<uint64_t> at) { return at ? checked_round_up(*at, kAlignment) : at; };
  const auto scales = aligned(checked_mul(rows, 8));
  const auto codes = aligned(checked_add(scales, checked_mul(rows, cols / 32 * 2)));
  return codes ? std::optional(Places{*scales, *codes}) : std::nullopt;
}

uint64_t code_words(std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, std::span<const uint32_t> row_map) {
  uint64_t bits = 0;
  for (uint64_t r = 0; r < (row_map.empty() ? rows : row_map.size()); ++r)
    bits += payload[row_map.empty() ? r : row_map[r]];
  return bits * (cols / 32);
}

StatusOr<uint64_t> sized(const Codec& codec, uint64_t rows, uint64_t cols, uint64_t words) {
  if (words > UINT32_MAX)
    return unsupported("the packed " + std::string(codec.name) + " tensor has more words of codes than 32 bits count");
  const auto places = places_of(rows, cols);
  return size_or_overflow(codec, rows, cols,
                          places ? checked_add(places->codes, checked_mul(words, uint64_t{4})) : std::nullopt);
}

StatusOr<uint64_t> least_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  const auto words = checked_mul(rows, cols / 32 * kLeastBits);
  return words ? sized(codec, rows, cols, *words) : size_or_overflow(codec, rows, cols, words);
}

StatusOr<uint64_t> bytes(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols,
                         std::span<const uint32_t> row_map) {
  return sized(codec, row_map.empty() ? rows : row_map.size(), cols, code_words(payload, rows, cols, row_map));
}

template <bool kOffsets>
void pack(std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, std::span<const uint32_t> row_map,
          uint8_t* out) {
  const uint64_t taken = row_map.empty() ? rows : row_map.size(), groups = cols / 32;
  const Places to = *places_of(taken, cols);
  const uint8_t* scales = payload.data() + rows;
  const uint8_t* streams = scales + rows * groups * 2 + (kOffsets ? 4 * (rows + 1) : 0);
  std::vector<uint64_t> starts(rows + 1);
  for (uint64_t r = 0; r < rows; ++r)
    starts[r + 1] = starts[r] + payload[r] * (cols / 8);
  std::memset(out, 0, to.codes);
  uint64_t word = 0;
  for (uint64_t r = 0; r < taken; ++r) {
    const uint64_t source = row_map.empty() ? r : row_map[r];
    store_u32(out + 8 * r, static_cast<uint32_t>(word));
    store_u32(out + 8 * r + 4, payload[source]);
    std::memcpy(out + to.scales + r * groups * 2, scales + source * groups * 2, groups * 2);
    const uint8_t* from = streams + starts[source];
    for (uint64_t w = 0; w < groups * payload[source]; ++w, ++word)
      for (uint64_t b = 0; b < 4; ++b)
        out[to.codes + 4 * word + b] = from[4 * w + 3 - b];
  }
}

Status check(const Codec& codec, std::span<const uint8_t> packed, uint64_t rows, uint64_t cols) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t least, least_bytes(codec, rows, cols));
  CORTIQ_RETURN_IF_ERROR(expect_at_least(codec, packed.size(), least, rows, cols));
  uint64_t word = 0;
  for (uint64_t r = 0; r < rows; ++r) {
    const uint32_t bits = load_u32(packed.data() + 8 * r + 4);
    if (bits < kLeastBits || bits > kMostBits || load_u32(packed.data() + 8 * r) != word)
      return invalid("row " + std::to_string(r) + " has an impossible place or bit width");
    word += cols / 32 * bits;
  }
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t size, sized(codec, rows, cols, word));
  return expect_size(codec, packed.size(), size, rows, cols);
}

void decode_row(std::span<const uint8_t> packed, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const Places at = *places_of(rows, cols);
  const uint32_t bits = load_u32(packed.data() + 8 * row + 4);
  const uint8_t* codes = packed.data() + at.codes + 4 * uint64_t{load_u32(packed.data() + 8 * row)};
  const int level = (1 << (bits - 1)) - 1;
  for (uint64_t i = 0; i < cols; ++i) {
    uint32_t code = 0;
    for (uint64_t b = i * bits; b < (i + 1) * bits; ++b)
      code = code << 1 | (load_u32(codes + b / 32 * 4) >> (31 - b % 32) & 1);
    out[i] = static_cast<float>(static_cast<int>(code) - level) *
             half_to_float(load_u16(packed.data() + at.scales + (row * (cols / 32) + i / 32) * 2));
  }
}

std::vector<uint8_t> slice(std::span<const uint8_t> packed, uint64_t rows, uint64_t cols, uint64_t first,
                           uint64_t count) {
  const Places from = *places_of(rows, cols), to = *places_of(count, cols);
  const auto begin_of = [&](uint64_t row) -> uint64_t {
    return row < rows ? load_u32(packed.data() + 8 * row) : (packed.size() - from.codes) / 4;
  };
  const uint64_t start = begin_of(first), words = begin_of(first + count) - start, scale_bytes = cols / 32 * 2;
  std::vector<uint8_t> out(to.codes + 4 * words);
  for (uint64_t r = 0; r < count; ++r) {
    store_u32(out.data() + 8 * r, static_cast<uint32_t>(begin_of(first + r) - start));
    std::memcpy(out.data() + 8 * r + 4, packed.data() + 8 * (first + r) + 4, 4);
  }
  std::memcpy(out.data() + to.scales, packed.data() + from.scales + first * scale_bytes, count * scale_bytes);
  std::memcpy(out.data() + to.codes, packed.data() + from.codes + 4 * start, 4 * words);
  return out;
}

template <bool kOffsets>
constexpr StreamPlanes kPlanes = {least_bytes, bytes, pack<kOffsets>, check, slice, decode_row};

} // namespace

constinit const StreamPlanes kVBitPlanes = kPlanes<false>, kVBitROPlanes = kPlanes<true>;

} // namespace cortiq::formats
