// MXFP4 to mxfp4: scales and codes apart, neighbours in a byte. Code 8 is +0 in GGUF and -0 in CMF, so it becomes 0;
// scale 255 is an exponent in GGUF and NaN in CMF, so such blocks cannot be kept.

#include "formats/encode/halves.h"
#include "formats/encode/keeper_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

uint8_t plain_zeros(uint8_t pair) {
  if ((pair & 0x0f) == 0x08)
    pair &= 0xf0;
  return (pair & 0xf0) == 0x80 ? pair & 0x0f : pair;
}

bool holds(const uint8_t* row, uint64_t cols) {
  for (uint64_t b = 0; b < cols / 32; ++b)
    if (row[17 * b] == 255)
      return false;
  return true;
}

Status write(const ByteRows& rows, PayloadSink& sink, unsigned threads) {
  const uint64_t blocks = rows.cols() / 32;
  const Plane planes[] = {{0, 16 * blocks}, {rows.rows() * blocks * 16, blocks}};
  return write_planes(sink, rows.rows(), planes, threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    std::vector<uint8_t> scratch;
    const uint8_t* from = rows.bytes(row, scratch);
    for (uint64_t b = 0; b < blocks; ++b) {
      out[1][b] = from[17 * b];
      pair_neighbours(from + 17 * b + 1, out[0] + 16 * b);
    }
    for (uint64_t i = 0; i < 16 * blocks; ++i)
      out[0][i] = plain_zeros(out[0][i]);
  });
}

} // namespace

constinit const Keeper kMXFP4Keeper = {CodecId::kMXFP4_GGML, CodecId::kMXFP4, holds, write};

} // namespace cortiq::formats
