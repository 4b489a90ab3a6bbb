#include "tools/cortiq-inspect/f32_output.h"

#include <algorithm>
#include <vector>

#include "formats/atomic_file.h"

namespace cortiq::inspect {

Status write_decoded(const formats::Codec& codec, const uint8_t* payload, uint64_t rows, uint64_t cols,
                     const std::string& path) {
  // Rows are written in batches, so that narrow tensors do not cost a system call a row.
  constexpr uint64_t kBatchWeights = 1 << 20;
  const uint64_t batch = std::max<uint64_t>(1, kBatchWeights / std::max<uint64_t>(1, cols));
  CORTIQ_ASSIGN_OR_RETURN(formats::AtomicFile file, formats::AtomicFile::create(path));
  std::vector<float> values(std::min(batch, rows) * cols);
  for (uint64_t first = 0; first < rows; first += batch) {
    const uint64_t count = std::min(batch, rows - first);
    for (uint64_t r = 0; r < count; ++r)
      codec.decode_row(payload, rows, cols, first + r, values.data() + r * cols);
    CORTIQ_RETURN_IF_ERROR(
        file.write(std::span(reinterpret_cast<const uint8_t*>(values.data()), count * cols * sizeof(float))));
  }
  return file.commit();
}

Status write_grouped(const formats::Codec& codec, std::span<const uint8_t> payload, const formats::GroupedShape& shape,
                     const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(formats::AtomicFile file, formats::AtomicFile::create(path));
  std::vector<float> values(shape.n * shape.k);
  for (uint64_t e = 0; e < shape.experts; ++e) {
    formats::decode_transposed(codec, payload, shape, e, values);
    CORTIQ_RETURN_IF_ERROR(
        file.write(std::span(reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float))));
  }
  return file.commit();
}

} // namespace cortiq::inspect
