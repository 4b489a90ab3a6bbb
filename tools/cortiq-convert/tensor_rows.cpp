#include "tools/cortiq-convert/tensor_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/page_release.h"

namespace cortiq::convert {
namespace {

constexpr uint64_t kMostPages = 64 << 20; // bytes of the source between two releases

/// Moves a row's columns, `unit` elements of T to a column stretch.
template <class T>
void move_columns(const ColumnOrder& columns, uint64_t stretches, uint64_t unit, const T* from, T* to) {
  for (uint64_t i = 0; i < stretches; ++i)
    std::copy_n(from + columns.order(i) * unit, unit, to + i * unit);
}

} // namespace

std::string layer_name(uint64_t layer, std::string_view suffix) {
  return "model.layers." + std::to_string(layer) + "." + std::string(suffix);
}

TensorRows::TensorRows(const SourceTensor& source) : source_(source), rows_(source.rows()), cols_(source.cols()) {
  const uint64_t row_bytes = source.tensor->data.size() / source.tensor->rows();
  release_every_ = std::max<uint64_t>(kMostPages / std::max<uint64_t>(row_bytes, 1), 1);
}

void TensorRows::count_row() const {
  if (++read_ % release_every_ == 0)
    formats::release_pages(source_.tensor->data);
}

void TensorRows::read_vector(float* out) const {
  const formats::Tensor& tensor = *source_.tensor;
  std::vector<float> values(tensor.cols());
  tensor.codec->decode_row(tensor.data.data(), 1, tensor.cols(), 0, values.data());
  for (uint64_t i = 0; i < cols_; ++i)
    out[i] = values[source_index(i)];
}

void TensorRows::read_matrix(uint64_t row, float* out) const {
  const formats::Tensor& tensor = *source_.tensor;
  if (source_.columns.run == 0) {
    tensor.codec->decode_row(tensor.data.data(), tensor.rows(), tensor.cols(), source_index(row), out);
    return;
  }
  std::vector<float> values(cols_);
  tensor.codec->decode_row(tensor.data.data(), tensor.rows(), tensor.cols(), source_index(row), values.data());
  move_columns(source_.columns, cols_ / source_.columns.run, source_.columns.run, values.data(), out);
}

void TensorRows::read(uint64_t row, float* out) const {
  count_row();
  if (source_.derived)
    source_.derived->read(row, out);
  else if (source_.shape.size() == 1)
    read_vector(out);
  else
    read_matrix(row, out);
  if (source_.value)
    std::transform(out, out + cols_, out, source_.value);
  for (uint64_t i = 0; i < cols_; ++i)
    if (!std::isfinite(out[i]))
      nonfinite_ = true;
}

const uint8_t* TensorRows::bytes(uint64_t row, std::vector<uint8_t>& scratch) const {
  count_row();
  const formats::Codec& codec = *source_.tensor->codec;
  const uint64_t size = cols_ / codec.block * codec.block_bytes;
  const uint8_t* from = source_.tensor->data.data() + source_index(row) * size;
  if (source_.columns.run == 0)
    return from;
  scratch.resize(size);
  const uint64_t run = source_.columns.run;
  move_columns(source_.columns, cols_ / run, run / codec.block * codec.block_bytes, from, scratch.data());
  return scratch.data();
}

} // namespace cortiq::convert
