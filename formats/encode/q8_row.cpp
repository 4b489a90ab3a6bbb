// q8_row: a row's scale is its absolute maximum / 127.

#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), cols = source.cols();
  const Plane planes[] = {{0, cols}, {rows * cols, 2}};
  return write_planes(sink, rows, planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    const std::vector<float> values = source.row(row);
    const float scale = f16_scale(absmax(values) / 127);
    for (uint64_t i = 0; i < cols; ++i)
      out[0][i] = static_cast<uint8_t>(quantize(values[i] / scale, -128, 127));
    store_half(out[1], scale);
  });
}

} // namespace

constinit const Encoder kQ8RowEncoder = {CodecId::kQ8Row, encode};

} // namespace cortiq::formats
