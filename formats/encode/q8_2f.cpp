// q8_2f: a column's scale is the root of its mean square, a row's the absolute maximum of what is left / 127.

#include <algorithm>
#include <cmath>

#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kBlockRows = 256; // rows whose squares are summed before the block joins the total
constexpr double kLeastRms = 1e-12;

std::vector<float> column_scales(const RowSource& source) {
  const uint64_t rows = source.rows(), cols = source.cols();
  std::vector<double> total(cols), block(cols);
  std::vector<float> values(cols);
  for (uint64_t first = 0; first < rows; first += kBlockRows) {
    std::fill(block.begin(), block.end(), 0.0);
    for (uint64_t row = first; row < std::min(rows, first + kBlockRows); ++row) {
      source.read(row, values.data());
      for (uint64_t i = 0; i < cols; ++i)
        block[i] += static_cast<double>(values[i]) * values[i];
    }
    for (uint64_t i = 0; i < cols; ++i)
      total[i] += block[i];
  }
  std::vector<float> scales(cols);
  for (uint64_t i = 0; i < cols; ++i)
    scales[i] = f16_scale(static_cast<float>(std::max(std::sqrt(total[i] / static_cast<double>(rows)), kLeastRms)));
  return scales;
}

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), cols = source.cols();
  const std::vector<float> columns = column_scales(source);
  const Plane planes[] = {{0, cols}, {rows * cols, 2}};
  CORTIQ_RETURN_IF_ERROR(
      write_planes(sink, rows, planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
        std::vector<float> values = source.row(row);
        for (uint64_t i = 0; i < cols; ++i)
          values[i] /= columns[i];
        const float scale = f16_scale(std::max(absmax(values), static_cast<float>(kLeastRms)) / 127);
        for (uint64_t i = 0; i < cols; ++i)
          out[0][i] = static_cast<uint8_t>(quantize(values[i] / scale, -127, 127));
        store_half(out[1], scale);
      }));
  std::vector<uint8_t> stored(2 * cols);
  for (uint64_t i = 0; i < cols; ++i)
    store_half(stored.data() + 2 * i, columns[i]);
  return sink.write_at(rows * (cols + 2), stored);
}

} // namespace

constinit const Encoder kQ82FEncoder = {CodecId::kQ82F, encode};

} // namespace cortiq::formats
