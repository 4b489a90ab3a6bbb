// f16: rounded as specification 2.0 says.

#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const Plane planes[] = {{0, 2 * source.cols()}};
  return write_planes(sink, source.rows(), planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    const std::vector<float> values = source.row(row);
    for (size_t i = 0; i < values.size(); ++i)
      store_half(out[0] + 2 * i, values[i]);
  });
}

} // namespace

constinit const Encoder kF16Encoder = {CodecId::kF16, encode};

} // namespace cortiq::formats
