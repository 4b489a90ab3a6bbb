// q1g: the signs of q1; the scale of 128 weights is the mean of q1's four.

#include "formats/encode/encoder_rows.h"
#include "formats/encode/q1_tile.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), cols = source.cols();
  const Plane planes[] = {{0, cols / 8}, {rows * (cols / 8), cols / 64}};
  return write_planes(sink, rows, planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    const std::vector<float> values = source.row(row);
    for (uint64_t g = 0; g < cols / 128; ++g) {
      float sum = 0;
      for (uint64_t t = 4 * g; t < 4 * g + 4; ++t) {
        const std::span<const float, 32> group(values.data() + 32 * t, 32);
        sum += q1_scale(group);
        store_u32(out[0] + 4 * t, sign_bits(group));
      }
      store_half(out[1] + 2 * g, sum / 4);
    }
  });
}

} // namespace

constinit const Encoder kQ1GEncoder = {CodecId::kQ1G, encode};

} // namespace cortiq::formats
