// q4_block: groups run over row ends, all nibbles first, then all scales; the last group is filled with zeros.

#include <algorithm>

#include "formats/checked_math.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/q4_group.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kSpanRows = 32; // so many rows are whole groups at any width

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), cols = source.cols();
  const uint64_t groups = ceil_div(rows * cols, 32);
  const uint64_t scales_at = 16 * groups;
  // The unit of work is as many rows as make whole groups; the last unit may be shorter.
  const uint64_t unit_rows = cols % 32 == 0 ? 1 : kSpanRows;
  const uint64_t unit_groups = unit_rows * cols / 32;
  const auto fill = [&](uint64_t unit, uint8_t* nibbles, uint8_t* scales) {
    const uint64_t first = unit * unit_rows, count = std::min(unit_rows, rows - first);
    std::vector<float> values(ceil_div(count * cols, 32) * 32);
    for (uint64_t r = 0; r < count; ++r)
      source.read(first + r, values.data() + r * cols);
    for (uint64_t g = 0; g < values.size() / 32; ++g)
      store_half(scales + 2 * g,
                 encode_q4_group(std::span<const float, 32>(values.data() + 32 * g, 32), nibbles + 16 * g));
  };
  const uint64_t whole = rows / unit_rows;
  const Plane planes[] = {{0, 16 * unit_groups}, {scales_at, 2 * unit_groups}};
  CORTIQ_RETURN_IF_ERROR(
      write_planes(sink, whole, planes, options.threads,
                   [&](uint64_t unit, std::span<uint8_t* const> out) { fill(unit, out[0], out[1]); }));
  const uint64_t left = groups - whole * unit_groups;
  std::vector<uint8_t> nibbles(16 * left), scales(2 * left);
  if (left > 0)
    fill(whole, nibbles.data(), scales.data());
  CORTIQ_RETURN_IF_ERROR(sink.write_at(16 * (groups - left), nibbles));
  return sink.write_at(scales_at + 2 * (groups - left), scales);
}

} // namespace

constinit const Encoder kQ4BlockEncoder = {CodecId::kQ4Block, encode};

} // namespace cortiq::formats
