// blr: a row of the matrix is a row of each path's h and U; g, l and V belong to all rows.

#include <algorithm>
#include <string>

#include "formats/layout/record_form.h"
#include "formats/layout/stream_form.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kHeaderBytes = 16;

uint64_t path_bytes(uint64_t rank, uint64_t rows, uint64_t cols) {
  return 2 * (rows + cols + rank) + rows * (rank / 8) + rank * (cols / 8);
}

void write_header(uint64_t paths, uint64_t rank, uint64_t rows, uint64_t cols, uint8_t* out) {
  const uint8_t magic[4] = {0x4C, 1, static_cast<uint8_t>(paths), 0};
  std::memcpy(out, magic, 4);
  store_u32(out + 4, static_cast<uint32_t>(rank));
  store_u32(out + 8, static_cast<uint32_t>(rows));
  store_u32(out + 12, static_cast<uint32_t>(cols));
}

StatusOr<uint64_t> taken_bytes(std::span<const uint8_t> payload, uint64_t, uint64_t cols,
                               std::span<const uint32_t> row_map) {
  const uint64_t rank = load_u32(payload.data() + 4);
  if (row_map.size() < rank)
    return unsupported(std::to_string(row_map.size()) + " rows of a blr tensor of rank " + std::to_string(rank) +
                       " cannot stand alone: a rank is at most the number of rows");
  return kHeaderBytes + payload[2] * path_bytes(rank, row_map.size(), cols);
}

void take_rows(std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, std::span<const uint32_t> row_map,
               uint8_t* out) {
  const uint64_t rank = load_u32(payload.data() + 4);
  const uint64_t paths = payload[2];
  write_header(paths, rank, row_map.size(), cols, out);
  const uint8_t* from = payload.data() + kHeaderBytes;
  uint8_t* to = out + kHeaderBytes;
  const auto copy = [&](const uint8_t* source, uint64_t bytes) {
    std::memcpy(to, source, bytes);
    to += bytes;
  };
  for (uint64_t p = 0; p < paths; ++p, from += path_bytes(rank, rows, cols)) {
    for (const uint32_t row : row_map)
      copy(from + 2 * row, 2);
    const uint8_t* shared = from + 2 * rows;
    copy(shared, 2 * (cols + rank));
    const uint8_t* u = shared + 2 * (cols + rank);
    for (const uint32_t row : row_map)
      copy(u + row * (rank / 8), rank / 8);
    copy(u + rows * (rank / 8), rank * (cols / 8));
  }
}

// One path of the least rank, 8: a weight is the sum of eight products of random sign, of deviation sqrt(8). Column
// scales lie around 1.5, in the middle of halves of one exponent, so that they are uniform.
void fill(RandomStream& random, uint64_t rows, uint64_t cols, uint8_t* out) {
  constexpr uint64_t kRank = 8;
  const HalfRange row_scales = scales_around(kFillDeviation / (1.5f * 2.8284f));
  const HalfRange column_scales = scales_around(1.5f);
  write_header(1, kRank, rows, cols, out);
  uint8_t* at = out + kHeaderBytes;
  for (uint64_t i = 0; i < rows; ++i, at += 2)
    store_u16(at, random.half_in(row_scales));
  for (uint64_t i = 0; i < cols; ++i, at += 2)
    store_u16(at, random.half_in(column_scales));
  for (uint64_t i = 0; i < kRank; ++i, at += 2)
    store_u16(at, float_to_half(1.0f));
  random.bytes(at, rows * (kRank / 8) + kRank * (cols / 8));
}

} // namespace

constinit const StreamForm kBLRForm = {
    .codec = CodecId::kBLR,
    .taken_bytes = taken_bytes,
    .take_rows = take_rows,
    .fill = fill,
};

} // namespace cortiq::formats
