#include <algorithm>
#include <cstring>

#include "formats/checked_math.h"
#include "formats/encode/encoder.h"
#include "formats/encode/encoder_rows.h"

namespace cortiq::formats {
namespace {

const Encoder* const kTable[] = {
    &kF32Encoder,     &kF16Encoder,  &kBF16Encoder, &kQ8RowEncoder,  &kQ82FEncoder, &kQ4BlockEncoder,
    &kQ4TiledEncoder, &kQ4TPEncoder, &kVBitEncoder, &kVBitROEncoder, &kQ1Encoder,   &kQ1SEncoder,
    &kQ1TEncoder,     &kQ2TPEncoder, &kQ1GEncoder,  &kMXFP4Encoder,
};

/// A matrix in memory.
class MemoryRows : public RowSource {
public:
  MemoryRows(std::span<const float> values, uint64_t rows, uint64_t cols) : values_(values), rows_(rows), cols_(cols) {}
  uint64_t rows() const override { return rows_; }
  uint64_t cols() const override { return cols_; }
  void read(uint64_t row, float* out) const override {
    std::memcpy(out, values_.data() + row * cols_, cols_ * sizeof(float));
  }

private:
  std::span<const float> values_;
  uint64_t rows_, cols_;
};

} // namespace

Status MemorySink::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  bytes_.resize(std::max<uint64_t>(bytes_.size(), offset + bytes.size()));
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<ptrdiff_t>(offset));
  return {};
}

std::span<const Encoder* const> encoder_table() {
  return kTable;
}

const Encoder* find_encoder(CodecId codec) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const Encoder* e) { return e->codec == codec; });
  return found == std::end(kTable) ? nullptr : *found;
}

Status check_encodable(const Codec& codec, uint64_t rows, uint64_t cols) {
  return codec.payload_bytes(codec, rows, cols).status();
}

StatusOr<std::vector<uint8_t>> encode_matrix(const Encoder& encoder, std::span<const float> values, uint64_t rows,
                                             uint64_t cols, const EncodeOptions& options) {
  CORTIQ_RETURN_IF_ERROR(check_encodable(codec_info(encoder.codec), rows, cols));
  if (checked_mul(rows, cols) != values.size())
    return invalid("has another number of values than its shape says");
  MemorySink sink;
  CORTIQ_RETURN_IF_ERROR(encoder.encode(MemoryRows(values, rows, cols), sink, options));
  return sink.take();
}

} // namespace cortiq::formats
