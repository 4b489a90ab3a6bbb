// mxfp4 (OCP): the shared exponent puts the largest magnitude of a group into [4, 8); codes round to the nearest grid
// value, ties to the even code, and saturate at 6.

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/codec/fp4.h"
#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

/// Code of a magnitude that was divided by the group's scale.
int grid_code(float magnitude) {
  int code = 0;
  while (code < 7) {
    const float middle = (kFP4Values[code] + kFP4Values[code + 1]) / 2;
    if (magnitude < middle || (magnitude == middle && code % 2 == 0))
      break;
    ++code;
  }
  return code;
}

/// Writes the codes of a group and gives back its scale byte.
uint8_t encode_group(std::span<const float, 32> values, uint8_t* codes) {
  const float largest = absmax(values);
  if (std::any_of(values.begin(), values.end(), [](float v) { return !std::isfinite(v); }))
    return 255;
  if (largest == 0)
    return 0;
  const int exponent = std::clamp(std::ilogb(largest) - 2, -127, 127);
  const float inverse = std::ldexp(1.0f, -exponent); // a power of two: the product is exact
  for (int i = 0; i < 32; ++i) {
    int code = grid_code(std::fabs(values[i]) * inverse);
    if (code != 0 && std::signbit(values[i]))
      code |= 8;
    codes[i / 2] |= static_cast<uint8_t>(code << (i % 2 * 4));
  }
  return static_cast<uint8_t>(exponent + 127);
}

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), groups = source.cols() / 32;
  const Plane planes[] = {{0, 16 * groups}, {rows * groups * 16, groups}};
  return write_planes(sink, rows, planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    const std::vector<float> values = source.row(row);
    for (uint64_t g = 0; g < groups; ++g)
      out[1][g] = encode_group(std::span<const float, 32>(values.data() + 32 * g, 32), out[0] + 16 * g);
  });
}

} // namespace

constinit const Encoder kMXFP4Encoder = {CodecId::kMXFP4, encode};

} // namespace cortiq::formats
