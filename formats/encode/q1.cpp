// q1: a tile's scale is the mean magnitude, its bits are set where the value is not negative.

#include "formats/encode/encoder_rows.h"
#include "formats/encode/q1_tile.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t tiles = source.cols() / 32;
  const Plane planes[] = {{0, 6 * tiles}};
  return write_planes(sink, source.rows(), planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    const std::vector<float> values = source.row(row);
    for (uint64_t t = 0; t < tiles; ++t) {
      const std::span<const float, 32> group(values.data() + 32 * t, 32);
      store_half(out[0] + 6 * t, q1_scale(group));
      store_u32(out[0] + 6 * t + 2, sign_bits(group));
    }
  });
}

} // namespace

constinit const Encoder kQ1Encoder = {CodecId::kQ1, encode};

} // namespace cortiq::formats
