// q4_tiled: scale, then nibbles, tile by tile.

#include "formats/encode/encoder_rows.h"
#include "formats/encode/q4_group.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t tiles = source.cols() / 32;
  const Plane planes[] = {{0, 18 * tiles}};
  return write_planes(sink, source.rows(), planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    const std::vector<float> values = source.row(row);
    for (uint64_t t = 0; t < tiles; ++t) {
      uint8_t* tile = out[0] + 18 * t;
      store_half(tile, encode_q4_group(std::span<const float, 32>(values.data() + 32 * t, 32), tile + 2));
    }
  });
}

} // namespace

constinit const Encoder kQ4TiledEncoder = {CodecId::kQ4Tiled, encode};

} // namespace cortiq::formats
