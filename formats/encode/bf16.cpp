// bf16: rounded to nearest even.

#include <bit>

#include "formats/codec/half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const Plane planes[] = {{0, 2 * source.cols()}};
  return write_planes(sink, source.rows(), planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    const std::vector<float> values = source.row(row);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
      store_u16(out[0] + 2 * i, static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16));
    }
  });
}

} // namespace

constinit const Encoder kBF16Encoder = {CodecId::kBF16, encode};

} // namespace cortiq::formats
