// vbit, vbit_ro: bit widths of rows, scales of groups of 32, for vbit_ro a table of row offsets, then the rows'
// streams.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "formats/layout/record_form.h"
#include "formats/layout/stream_form.h"

namespace cortiq::formats {
namespace {

/// Where the parts of a payload stand.
struct Parts {
  uint64_t scales;
  uint64_t offsets; ///< equal to `streams` where there is no table
  uint64_t streams;
};

template <bool kOffsets>
Parts parts_of(uint64_t rows, uint64_t cols) {
  const uint64_t offsets = rows + rows * (cols / 32) * 2;
  return {rows, offsets, offsets + (kOffsets ? 4 * (rows + 1) : 0)};
}

template <bool kOffsets>
StatusOr<uint64_t> taken_bytes(std::span<const uint8_t> payload, uint64_t rows, uint64_t cols,
                               std::span<const uint32_t> row_map) {
  uint64_t bits = 0;
  for (const uint32_t row : row_map)
    bits += payload[row];
  const uint64_t streams = bits * (cols / 8);
  if (kOffsets && streams > UINT32_MAX)
    return unsupported("the packed vbit_ro tensor has more bytes of codes than its 32-bit row offsets can address");
  return parts_of<kOffsets>(row_map.size(), cols).streams + streams;
}

template <bool kOffsets>
void take_rows(std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, std::span<const uint32_t> row_map,
               uint8_t* out) {
  const Parts from = parts_of<kOffsets>(rows, cols);
  const Parts to = parts_of<kOffsets>(row_map.size(), cols);
  std::vector<uint64_t> starts(rows + 1);
  for (uint64_t r = 0; r < rows; ++r)
    starts[r + 1] = starts[r] + payload[r] * (cols / 8);
  const uint64_t scale_bytes = cols / 32 * 2;
  uint64_t at = 0;
  for (uint64_t r = 0; r < row_map.size(); ++r) {
    const uint64_t source = row_map[r];
    out[r] = payload[source];
    std::memcpy(out + to.scales + r * scale_bytes, payload.data() + from.scales + source * scale_bytes, scale_bytes);
    if (kOffsets)
      store_u32(out + to.offsets + 4 * r, static_cast<uint32_t>(at));
    const uint64_t bytes = starts[source + 1] - starts[source];
    std::memcpy(out + to.streams + at, payload.data() + from.streams + starts[source], bytes);
    at += bytes;
  }
  if (kOffsets)
    store_u32(out + to.offsets + 4 * row_map.size(), static_cast<uint32_t>(at));
}

// Rows of the fewest bits, 3. Levels run from -3 to 4, so scales of both signs bring the mean to 0; 2.345 is then the
// deviation of the weights at scale 1.
template <bool kOffsets>
void fill(RandomStream& random, uint64_t rows, uint64_t cols, uint8_t* out) {
  constexpr uint8_t kBits = 3;
  const HalfRange scales = scales_around(kFillDeviation / 2.345f);
  const Parts parts = parts_of<kOffsets>(rows, cols);
  std::fill_n(out, rows, kBits);
  for (uint64_t g = 0; g < rows * (cols / 32); ++g)
    store_u16(out + parts.scales + 2 * g,
              static_cast<uint16_t>(random.half_in(scales) | (random.next() >> 63 ? 0x8000u : 0u)));
  const uint64_t row_bytes = kBits * (cols / 8);
  for (uint64_t r = 0; kOffsets && r <= rows; ++r)
    store_u32(out + parts.offsets + 4 * r, static_cast<uint32_t>(r * row_bytes));
  random.bytes(out + parts.streams, rows * row_bytes);
}

} // namespace

constinit const StreamForm kVBitForm = {
    .codec = CodecId::kVBit,
    .taken_bytes = taken_bytes<false>,
    .take_rows = take_rows<false>,
    .fill = fill<false>,
    .planes = &kVBitPlanes,
};

constinit const StreamForm kVBitROForm = {
    .codec = CodecId::kVBitRO,
    .taken_bytes = taken_bytes<true>,
    .take_rows = take_rows<true>,
    .fill = fill<true>,
    .planes = &kVBitROPlanes,
};

} // namespace cortiq::formats
