#include "test/fuzz/walk_tensors.h"

#include "test/fuzz/memory_file.h"

namespace cortiq::fuzz {

void walk_tensors(const std::vector<formats::Tensor>& tensors) {
  std::vector<float> row;
  for (const formats::Tensor& tensor : tensors) {
    consume(tensor.data);
    const StatusOr<const formats::Codec*> codec = formats::weight_codec(tensor);
    const uint64_t rows = tensor.rows();
    const uint64_t cols = tensor.cols();
    if (!codec.ok() || rows == 0 || cols == 0)
      continue;
    row.resize(cols);
    for (const uint64_t at : {uint64_t{0}, rows / 2, rows - 1})
      (*codec)->decode_row(tensor.data.data(), rows, cols, at, row.data());
  }
}

} // namespace cortiq::fuzz
