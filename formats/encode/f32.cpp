// f32: the values themselves.

#include <cstring>

#include "formats/encode/encoder_rows.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const Plane planes[] = {{0, 4 * source.cols()}};
  return write_planes(sink, source.rows(), planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    const std::vector<float> values = source.row(row);
    std::memcpy(out[0], values.data(), 4 * values.size());
  });
}

} // namespace

constinit const Encoder kF32Encoder = {CodecId::kF32, encode};

} // namespace cortiq::formats
