#include "formats/cmf/cmf_directory.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "formats/checked_math.h"
#include "formats/cmf/cmf_dtype.h"
#include "formats/cmf/cmf_envelope.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

template <class T>
T load(std::span<const uint8_t> bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

StatusOr<std::string> read_name(std::span<const uint8_t> record, std::span<const uint8_t> pool) {
  const uint32_t offset = load<uint32_t>(record, 0);
  const uint16_t length = load<uint16_t>(record, 4);
  if (!range_fits(offset, length, pool.size()))
    return invalid("name outside the pool (" + std::to_string(offset) + " + " + std::to_string(length) + " of " +
                   std::to_string(pool.size()) + " bytes)");
  std::string name(reinterpret_cast<const char*>(pool.data()) + offset, length);
  if (name.empty())
    return invalid("name is empty");
  if (!is_utf8(name))
    return invalid("name " + quote(name) + " is not UTF-8");
  return name;
}

/// Reads the shape and checks that its product fits; a product of zero is left to the dtype's own rules.
Status read_shape(std::span<const uint8_t> record, Tensor& tensor) {
  const uint8_t rank = record[7];
  if (rank > kCmfMaxDimensions)
    return invalid("has more than 6 dimensions (" + std::to_string(rank) + ")");
  std::optional<uint64_t> product = 1;
  for (size_t i = 0; i < kCmfMaxDimensions; ++i) {
    const uint32_t dim = load<uint32_t>(record, 8 + 4 * i);
    if (i < rank) {
      tensor.shape.push_back(dim);
      product = checked_mul(product, dim);
    } else if (dim != 0) {
      return invalid("states a size for dimension " + std::to_string(i) + ", but has only " + std::to_string(rank));
    }
  }
  if (!product)
    return invalid("has the shape " + shape_text(tensor.shape) + ", whose product of dimensions overflows 64 bits");
  return {};
}

Status read_payload(std::span<const uint8_t> record, std::span<const uint8_t> data, uint64_t data_offset,
                    Tensor& tensor) {
  const uint64_t offset = load<uint64_t>(record, 32);
  const uint64_t size = load<uint64_t>(record, 40);
  if (offset % kCmfTensorAlignment != 0)
    return invalid("has the offset " + std::to_string(offset) + ", which is not a multiple of 64");
  if (!range_fits(offset, size, data.size()))
    return invalid("ends past the data section (" + std::to_string(offset) + " + " + std::to_string(size) + " of " +
                   std::to_string(data.size()) + " bytes)");
  tensor.offset = data_offset + offset;
  tensor.data = data.subspan(offset, size);
  return {};
}

/// Weights of no element decode to nothing, and every later size computation would have to allow for them; raw tables
/// may be empty.
Status check_not_empty(const Tensor& tensor) {
  const bool raw = tensor.codec != nullptr && tensor.codec->form == DotForm::kNone;
  if (raw || std::find(tensor.shape.begin(), tensor.shape.end(), 0) == tensor.shape.end())
    return {};
  return invalid("tensor " + quote(tensor.name) + " has the shape " + shape_text(tensor.shape) +
                 ", without any weight");
}

Status check_overlap(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> order;
  for (const Tensor& t : tensors)
    if (!t.data.empty())
      order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i]->offset - order[i - 1]->offset < order[i - 1]->data.size())
      return invalid("tensors " + quote(order[i - 1]->name) + " and " + quote(order[i]->name) + " share bytes");
  return {};
}

Status read_record(std::span<const uint8_t> record, std::span<const uint8_t> pool, std::span<const uint8_t> data,
                   uint64_t data_offset, size_t index, Tensor& tensor) {
  StatusOr<std::string> name = read_name(record, pool);
  if (!name.ok())
    return name.status().with_prefix("tensor #" + std::to_string(index));
  tensor.name = *std::move(name);
  tensor.type_code = record[6];
  const std::string where = "tensor " + quote(tensor.name);
  CORTIQ_RETURN_IF_ERROR(read_shape(record, tensor).with_prefix(where));
  CORTIQ_RETURN_IF_ERROR(read_payload(record, data, data_offset, tensor).with_prefix(where));
  CORTIQ_RETURN_IF_ERROR(resolve_cmf_dtype(tensor));
  return check_not_empty(tensor);
}

} // namespace

StatusOr<CmfDirectory> parse_cmf_directory(std::span<const uint8_t> directory, std::span<const uint8_t> data,
                                           uint64_t data_offset) {
  if (directory.size() < kCmfDirectoryHead)
    return invalid("the directory has " + std::to_string(directory.size()) + " bytes, shorter than its 16-byte head");
  const uint64_t count = load<uint64_t>(directory, 0);
  const uint64_t pool_offset = load<uint64_t>(directory, 8);
  const std::optional<uint64_t> records_end = checked_add(checked_mul(count, kCmfRecordBytes), kCmfDirectoryHead);
  if (!records_end || *records_end > directory.size())
    return invalid("the directory's record count " + std::to_string(count) + " does not fit its " +
                   std::to_string(directory.size()) + " bytes");
  if (pool_offset < *records_end || pool_offset > directory.size())
    return invalid("the directory's name pool starts at " + std::to_string(pool_offset) + ", expected " +
                   std::to_string(*records_end) + " to " + std::to_string(directory.size()));
  const std::span<const uint8_t> pool = directory.subspan(pool_offset);
  CmfDirectory out;
  out.tensors.reserve(count);
  out.hashes.reserve(count);
  std::unordered_set<std::string> names;
  uint64_t names_total = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::span<const uint8_t> record = directory.subspan(kCmfDirectoryHead + i * kCmfRecordBytes, kCmfRecordBytes);
    Tensor& tensor = out.tensors.emplace_back();
    CORTIQ_RETURN_IF_ERROR(read_record(record, pool, data, data_offset, i, tensor));
    if (!names.insert(tensor.name).second)
      return invalid("two tensors have one name, " + quote(tensor.name));
    // Names are distinct, so honest ones do not share bytes of the pool; overlapping ones could ask for far more memory
    // than the file has bytes.
    names_total += tensor.name.size();
    if (names_total > pool.size())
      return invalid("the directory's names overlap each other in the name pool");
    out.hashes.push_back(load<uint64_t>(record, 48));
  }
  CORTIQ_RETURN_IF_ERROR(check_overlap(out.tensors));
  return out;
}

} // namespace cortiq::formats
