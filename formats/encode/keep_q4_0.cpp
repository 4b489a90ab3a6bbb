// Q4_0 to q4_tiled: the same scale and codes, neighbours in a byte instead of halves.

#include <cstring>

#include "formats/encode/halves.h"
#include "formats/encode/keeper_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

Status write(const ByteRows& rows, PayloadSink& sink, unsigned threads) {
  const uint64_t blocks = rows.cols() / 32;
  const Plane planes[] = {{0, 18 * blocks}};
  return write_planes(sink, rows.rows(), planes, threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    std::vector<uint8_t> scratch;
    const uint8_t* from = rows.bytes(row, scratch);
    for (uint64_t b = 0; b < blocks; ++b) {
      std::memcpy(out[0] + 18 * b, from + 18 * b, 2);
      pair_neighbours(from + 18 * b + 2, out[0] + 18 * b + 2);
    }
  });
}

} // namespace

constinit const Keeper kQ40Keeper = {CodecId::kQ4_0, CodecId::kQ4Tiled, nullptr, write};

} // namespace cortiq::formats
