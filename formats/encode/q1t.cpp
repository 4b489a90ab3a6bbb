// q1t without overlay. The specification has a rule for groups that are ternary already; for others this takes the
// split that leaves the least squared error: of the weights by falling magnitude, the k first become the scale, which
// is their mean, and k maximises (their sum)^2 / k. A ternary group comes out as it is.

#include <algorithm>
#include <cmath>

#include "formats/codec/overlay.h"
#include "formats/codec/ternary.h"
#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/q1t_tile.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

void encode_tile(std::span<const float, 32> values, uint8_t* tile) {
  float sorted[32];
  std::transform(values.begin(), values.end(), sorted, [](float v) { return std::fabs(v); });
  std::sort(std::begin(sorted), std::end(sorted), std::greater<>());
  double sum = 0, best = -1, mean = 0;
  float threshold = 0;
  for (int k = 1; k <= 32; ++k) {
    sum += sorted[k - 1];
    if (const double gain = sum * sum / k; gain > best) {
      best = gain;
      mean = sum / k;
      threshold = sorted[k - 1];
    }
  }
  int digits[35] = {};
  for (int i = 0; i < 32; ++i)
    if (std::fabs(values[i]) >= threshold && values[i] != 0)
      digits[i] = values[i] > 0 ? 1 : 2;
  store_q1t_tile(tile, cmf_half(static_cast<float>(mean)), digits);
}

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), tiles = source.cols() / 32;
  const Plane planes[] = {{0, 9 * tiles}};
  CORTIQ_RETURN_IF_ERROR(
      write_planes(sink, rows, planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
        const std::vector<float> values = source.row(row);
        for (uint64_t t = 0; t < tiles; ++t)
          encode_tile(std::span<const float, 32>(values.data() + 32 * t, 32), out[0] + 9 * t);
      }));
  return write_empty_q1t_overlay(sink, rows, tiles);
}

} // namespace

constinit const Encoder kQ1TEncoder = {CodecId::kQ1T, encode};

} // namespace cortiq::formats
