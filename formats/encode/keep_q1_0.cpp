// Q1_0 to q1g: signs and scales apart.

#include <cstring>

#include "formats/encode/keeper_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

Status write(const ByteRows& rows, PayloadSink& sink, unsigned threads) {
  const uint64_t blocks = rows.cols() / 128;
  const Plane planes[] = {{0, 16 * blocks}, {rows.rows() * blocks * 16, 2 * blocks}};
  return write_planes(sink, rows.rows(), planes, threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    std::vector<uint8_t> scratch;
    const uint8_t* from = rows.bytes(row, scratch);
    for (uint64_t b = 0; b < blocks; ++b) {
      std::memcpy(out[1] + 2 * b, from + 18 * b, 2);
      std::memcpy(out[0] + 16 * b, from + 18 * b + 2, 16);
    }
  });
}

} // namespace

constinit const Keeper kQ10Keeper = {CodecId::kQ1_0, CodecId::kQ1G, nullptr, write};

} // namespace cortiq::formats
