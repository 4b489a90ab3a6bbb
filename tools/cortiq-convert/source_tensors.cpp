#include "tools/cortiq-convert/source_tensors.h"

#include "formats/quote.h"

namespace cortiq::convert {

using formats::quote;
using formats::Tensor;

namespace {

// Some writers keep the axis of 1 of a depthwise convolution, others drop it.
std::vector<uint64_t> without_ones(std::vector<uint64_t> shape) {
  std::erase(shape, uint64_t{1});
  return shape;
}

} // namespace

StatusOr<const Tensor*> SourceTensors::take(const std::string& name, const std::vector<uint64_t>& shape) {
  const Tensor* tensor = find_(name);
  if (!tensor)
    return invalid("tensor " + quote(name) + " is missing; the model is incomplete, fetch it again");
  if (without_ones(tensor->shape) != without_ones(shape))
    return invalid("tensor " + quote(name) + " has shape " + formats::shape_text(tensor->shape) + ", expected " +
                   formats::shape_text(shape));
  CORTIQ_RETURN_IF_ERROR(formats::weight_codec(*tensor).status());
  used_.insert(tensor);
  return tensor;
}

void SourceTensors::add_made(SourceTensor tensor) {
  names_.insert(tensor.name);
  tensors_.push_back(std::move(tensor));
}

StatusOr<SourceTensor*> SourceTensors::add(const std::string& name, std::string canonical,
                                           std::vector<uint64_t> shape) {
  return add_slice(name, std::move(canonical), std::move(shape), {});
}

StatusOr<SourceTensor*> SourceTensors::add_slice(const std::string& name, std::string canonical,
                                                 std::vector<uint64_t> shape, const Slice& slice) {
  std::vector<uint64_t> file_shape = shape;
  if (slice.file_rows != 0)
    file_shape[0] = slice.file_rows;
  CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const added,
                          add_shaped(name, std::move(canonical), std::move(shape), file_shape, slice.first));
  added->order = slice.order;
  return added;
}

StatusOr<SourceTensor*> SourceTensors::add_shaped(const std::string& name, std::string canonical,
                                                  std::vector<uint64_t> shape, const std::vector<uint64_t>& file_shape,
                                                  uint64_t first_row) {
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, take(name, file_shape));
  SourceTensor made;
  made.name = std::move(canonical);
  made.shape = std::move(shape);
  made.tensor = tensor;
  made.first_row = first_row;
  add_made(std::move(made));
  return &tensors_.back();
}

void scale_residual(SourceTensor& tensor, double scale) {
  if (scale != 1)
    tensor.value = [by = static_cast<float>(scale)](float v) { return v * by; };
}

namespace {

/// Rows of one key head: queries, keys, values, gates.
uint64_t group_rows(const DeltaSizes& d) {
  return 2 * d.key_size + 2 * d.turns() * d.value_size;
}

} // namespace

uint64_t grouped_rows(const DeltaSizes& d) {
  return d.key_heads * group_rows(d);
}

IndexOrder grouped_qkv(const DeltaSizes& d) {
  const uint64_t group = group_rows(d), keys = d.keys();
  return [keys, q = from_groups(group, 0, d.key_size), k = from_groups(group, d.key_size, d.key_size),
          v = from_groups(group, 2 * d.key_size, d.turns() * d.value_size)](uint64_t i) {
    return i < keys ? q(i) : i < 2 * keys ? k(i - keys) : v(i - 2 * keys);
  };
}

IndexOrder grouped_z(const DeltaSizes& d) {
  const uint64_t values = d.turns() * d.value_size;
  return from_groups(group_rows(d), 2 * d.key_size + values, values);
}

IndexOrder grouped_a(const DeltaSizes& d) {
  return from_groups(2 * d.turns(), d.turns(), d.turns());
}

IndexOrder grouped_b(const DeltaSizes& d) {
  return from_groups(2 * d.turns(), 0, d.turns());
}

} // namespace cortiq::convert
