// F32, F16, BF16: the same bytes in both containers.

#include <cstring>

#include "formats/encode/keeper_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

template <int kBytes>
Status write(const ByteRows& rows, PayloadSink& sink, unsigned threads) {
  const uint64_t size = kBytes * rows.cols();
  const Plane planes[] = {{0, size}};
  return write_planes(sink, rows.rows(), planes, threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    std::vector<uint8_t> scratch;
    std::memcpy(out[0], rows.bytes(row, scratch), size);
  });
}

} // namespace

constinit const Keeper kF32Keeper = {CodecId::kF32, CodecId::kF32, nullptr, write<4>};
constinit const Keeper kF16Keeper = {CodecId::kF16, CodecId::kF16, nullptr, write<2>};
constinit const Keeper kBF16Keeper = {CodecId::kBF16, CodecId::kBF16, nullptr, write<2>};

} // namespace cortiq::formats
