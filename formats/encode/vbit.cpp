// vbit, vbit_ro: rows get 3, 4, 5, 6 or 8 bits by how their absolute maximum compares, in powers of two, with the
// mean of all rows.

#include <cmath>
#include <numeric>
#include <string>

#include "formats/encode/bit_stream.h"
#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

constexpr int kWidths[] = {3, 4, 5, 6, 8};

std::vector<uint8_t> row_widths(const RowSource& source, const EncodeOptions& options) {
  const uint64_t rows = source.rows();
  std::vector<double> log(rows);
  for_each_row(0, rows, options.threads, [&](uint64_t row) {
    log[row] = std::log2(std::max(static_cast<double>(absmax(source.row(row))), 1e-12));
  });
  const double mean = std::accumulate(log.begin(), log.end(), 0.0) / static_cast<double>(rows);
  std::vector<uint8_t> widths(rows);
  for (uint64_t row = 0; row < rows; ++row) {
    const double target = options.mean_bits + (log[row] - mean);
    int best = kWidths[0];
    for (const int width : kWidths)
      if (std::fabs(width - target) < std::fabs(best - target))
        best = width;
    widths[row] = static_cast<uint8_t>(best);
  }
  return widths;
}

/// Codes and scales of one row.
void encode_row(std::span<const float> values, int width, uint8_t* scales, uint8_t* stream) {
  const int level = (1 << (width - 1)) - 1;
  BitStream bits(stream);
  for (size_t g = 0; g < values.size() / 32; ++g) {
    const std::span<const float> group = values.subspan(32 * g, 32);
    const float scale = f16_scale(absmax(group) / static_cast<float>(level));
    store_half(scales + 2 * g, scale);
    for (const float v : group)
      bits.put(static_cast<uint32_t>(quantize(v / scale, -level, (1 << width) - 1 - level) + level), width);
  }
}

template <bool kOffsets>
Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), cols = source.cols(), groups = cols / 32;
  const std::vector<uint8_t> widths = row_widths(source, options);
  std::vector<uint64_t> at(rows + 1);
  for (uint64_t row = 0; row < rows; ++row)
    at[row + 1] = at[row] + cols / 8 * widths[row];
  const uint64_t table_at = rows * (1 + 2 * groups);
  const uint64_t streams_at = table_at + (kOffsets ? 4 * (rows + 1) : 0);
  CORTIQ_RETURN_IF_ERROR(sink.write_at(0, widths));
  if (kOffsets) {
    if (at[rows] > UINT32_MAX)
      return invalid("has codes of " + std::to_string(at[rows]) +
                     " bytes, more than vbit_ro's 32-bit row offsets reach; take vbit or another codec");
    std::vector<uint8_t> table(4 * (rows + 1));
    for (uint64_t row = 0; row <= rows; ++row)
      store_u32(table.data() + 4 * row, static_cast<uint32_t>(at[row]));
    CORTIQ_RETURN_IF_ERROR(sink.write_at(table_at, table));
  }
  // Streams differ in length, so rows are gathered in spans of their own.
  constexpr uint64_t kSpanRows = 256;
  for (uint64_t first = 0; first < rows; first += kSpanRows) {
    const uint64_t count = std::min(kSpanRows, rows - first);
    std::vector<uint8_t> scales(count * groups * 2), streams(at[first + count] - at[first]);
    for_each_row(first, count, options.threads, [&](uint64_t row) {
      encode_row(source.row(row), widths[row], scales.data() + (row - first) * groups * 2,
                 streams.data() + (at[row] - at[first]));
    });
    CORTIQ_RETURN_IF_ERROR(sink.write_at(rows + first * groups * 2, scales));
    CORTIQ_RETURN_IF_ERROR(sink.write_at(streams_at + at[first], streams));
  }
  return {};
}

} // namespace

constinit const Encoder kVBitEncoder = {CodecId::kVBit, encode<false>};
constinit const Encoder kVBitROEncoder = {CodecId::kVBitRO, encode<true>};

} // namespace cortiq::formats
