#include "tools/cortiq-convert/tensor_rows.h"

#include <cmath>

namespace cortiq::convert {

std::string layer_name(uint64_t layer, std::string_view suffix) {
  return "model.layers." + std::to_string(layer) + "." + std::string(suffix);
}

TensorRows::TensorRows(const SourceTensor& source)
    : source_(source), rows_(source.shape.size() == 2 ? source.shape[0] : 1), cols_(source.shape.back()) {}

/// Where row (of a matrix) or value (of a vector) `index` lies in the source's tensor. A head's rows are stored as
/// neighbours 2i and 2i + 1 of the halves i and i + head / 2.
uint64_t TensorRows::source_index(uint64_t index) const {
  if (source_.head == 0)
    return source_.first_row + index;
  const uint64_t half = source_.head / 2;
  const uint64_t within = index % source_.head;
  return source_.first_row + index - within + 2 * (within % half) + within / half;
}

void TensorRows::read(uint64_t row, float* out) const {
  const formats::Tensor& tensor = *source_.tensor;
  if (source_.shape.size() == 2) {
    tensor.codec->decode_row(tensor.data.data(), tensor.rows(), tensor.cols(), source_index(row), out);
  } else {
    std::vector<float> values(tensor.cols());
    tensor.codec->decode_row(tensor.data.data(), 1, tensor.cols(), 0, values.data());
    for (uint64_t i = 0; i < cols_; ++i)
      out[i] = values[source_index(i)];
  }
  for (uint64_t i = 0; i < cols_; ++i)
    if (!std::isfinite(out[i]))
      nonfinite_ = true;
}

const uint8_t* TensorRows::bytes(uint64_t row) const {
  const formats::Codec& codec = *source_.tensor->codec;
  return source_.tensor->data.data() + source_index(row) * (cols_ / codec.block) * codec.block_bytes;
}

} // namespace cortiq::convert
