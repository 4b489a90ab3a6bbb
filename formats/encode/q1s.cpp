// q1s: the largest weights of the tensor go to an overlay; tiles as in q1, with the mean of what is left.

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/q1_tile.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kEntryBytes = 6;

uint32_t magnitude(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7fffffffu;
}

/// Which weights are outliers: all of a magnitude above `bound`, and the first `ties` of exactly that one.
struct Outliers {
  uint32_t bound = 0;
  uint64_t ties = 0;
};

/// The `count` largest magnitudes. Magnitudes sort as their bits do, so two counts of 16 bits each find the bound
/// without holding the tensor.
Outliers select(const RowSource& source, uint64_t count) {
  Outliers found;
  if (count == 0)
    return {.bound = 0x7fffffffu};
  std::vector<float> values(source.cols());
  uint64_t left = count;
  for (const int shift : {16, 0}) {
    std::vector<uint64_t> histogram(65536);
    for (uint64_t row = 0; row < source.rows(); ++row) {
      source.read(row, values.data());
      for (const float v : values)
        if (shift == 16 || magnitude(v) >> 16 == found.bound >> 16)
          ++histogram[magnitude(v) >> shift & 0xffff];
    }
    uint32_t bin = 65535;
    while (histogram[bin] < left)
      left -= histogram[bin--];
    found.bound |= bin << shift;
  }
  found.ties = left;
  return found;
}

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), cols = source.cols(), tiles = cols / 32;
  if (rows * cols > uint64_t{1} << 32)
    return invalid("has more than 2^32 weights, beyond the indices of q1s");
  const auto count = static_cast<uint64_t>(options.kept_outliers * static_cast<double>(rows * cols));
  Outliers outliers = select(source, count);
  const uint64_t overlay_at = rows * tiles * 6;
  std::vector<uint8_t> head(4);
  store_u32(head.data(), static_cast<uint32_t>(count));
  CORTIQ_RETURN_IF_ERROR(sink.write_at(overlay_at, head));
  uint64_t entry_at = overlay_at + 4;
  std::vector<float> values(cols);
  std::vector<uint8_t> out(6 * tiles), entries;
  for (uint64_t row = 0; row < rows; ++row) {
    source.read(row, values.data());
    entries.clear();
    for (uint64_t t = 0; t < tiles; ++t) {
      const std::span<const float, 32> group(values.data() + 32 * t, 32);
      float sum = 0;
      int kept = 0;
      for (uint64_t i = 0; i < 32; ++i) {
        const uint32_t m = magnitude(group[i]);
        const bool outlier = m > outliers.bound || (m == outliers.bound && outliers.ties > 0);
        if (!outlier) {
          sum += std::fabs(group[i]);
          ++kept;
          continue;
        }
        outliers.ties -= m == outliers.bound;
        entries.resize(entries.size() + kEntryBytes);
        store_u32(entries.data() + entries.size() - kEntryBytes, static_cast<uint32_t>(row * cols + 32 * t + i));
        store_half(entries.data() + entries.size() - 2, group[i]);
      }
      store_half(out.data() + 6 * t, f16_scale(kept == 0 ? 0 : sum / static_cast<float>(kept)));
      store_u32(out.data() + 6 * t + 2, sign_bits(group));
    }
    CORTIQ_RETURN_IF_ERROR(sink.write_at(row * tiles * 6, out));
    CORTIQ_RETURN_IF_ERROR(sink.write_at(entry_at, entries));
    entry_at += entries.size();
  }
  return {};
}

} // namespace

constinit const Encoder kQ1SEncoder = {CodecId::kQ1S, encode};

} // namespace cortiq::formats
