#include "formats/layout/layout.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>

#include "formats/checked_math.h"
#include "formats/layout/row_group.h"

namespace cortiq::formats {
namespace {

const LayoutField& find_field(const std::vector<LayoutField>& fields, std::string_view name) {
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const LayoutField& f) { return f.name == name; });
  assert(field != fields.end() && "the codec's form has this field");
  return *field;
}

bool is_identity(std::span<const uint32_t> row_map, uint64_t source_rows) {
  if (row_map.empty())
    return true;
  if (row_map.size() != source_rows)
    return false;
  for (size_t r = 0; r < row_map.size(); ++r)
    if (row_map[r] != r)
      return false;
  return true;
}

// A payload's planes; raw data are rows of one plane.
PlaneSizes payload_planes(const Codec& codec, uint64_t cols) {
  if (const RecordForm* form = find_record_form(codec.id))
    return form->planes(cols);
  return {.row_bytes = {cols * codec.block_bytes}};
}

Status pack_verbatim(const Codec& codec, std::span<const uint8_t> payload, uint64_t source_rows, uint64_t cols,
                     std::span<const uint32_t> row_map, std::span<uint8_t> out) {
  if (is_identity(row_map, source_rows)) {
    std::copy(payload.begin(), payload.end(), out.begin());
    return {};
  }
  if (codec.flat && cols % codec.block != 0)
    return unsupported(std::string(codec.name) + " rows of " + std::to_string(cols) +
                       " weights share their groups, so that rows cannot be reordered or taken apart");
  const PlaneSizes sizes = payload_planes(codec, cols);
  for (uint64_t r = 0; r < row_map.size(); ++r) {
    const RowPlanes from = row_planes(sizes, payload.data(), source_rows, row_map[r]);
    const MutableRowPlanes to = row_planes(sizes, out.data(), row_map.size(), r);
    for (int p = 0; p < kMaxPlanes; ++p)
      if (sizes.row_bytes[p] != 0)
        std::memcpy(to.plane[p], from.plane[p], sizes.row_bytes[p]);
  }
  std::copy(payload.end() - static_cast<ptrdiff_t>(sizes.shared_bytes), payload.end(),
            out.end() - static_cast<ptrdiff_t>(sizes.shared_bytes));
  return {};
}

void pack_rows(const RecordShape& shape, std::span<const uint8_t> payload, uint64_t source_rows, uint64_t rows,
               std::span<const uint32_t> row_map, std::span<uint8_t> out) {
  const PlaneSizes sizes = shape.form->planes(shape.cols);
  uint8_t* at = out.data();
  if (shape.tensor_bytes != 0) {
    std::memset(at, 0, shape.tensor_bytes);
    std::memcpy(at, payload.data() + source_rows * sizes.row_total(), sizes.shared_bytes);
    at += shape.tensor_bytes;
  }
  std::vector<uint8_t> scratch;
  RowPlanes group[kRowGroup];
  for (uint64_t first = 0; first < rows; first += kRowGroup) {
    const uint32_t count = static_cast<uint32_t>(std::min<uint64_t>(kRowGroup, rows - first));
    for (uint32_t r = 0; r < count; ++r)
      group[r] = row_planes(sizes, payload.data(), source_rows, row_map.empty() ? first + r : row_map[first + r]);
    pack_group(shape, group, count, scratch, at);
    at += count * shape.row_bytes();
  }
}

} // namespace

const LayoutField& R16Format::header_field(std::string_view name) const {
  return find_field(header, name);
}
const LayoutField& R16Format::field(std::string_view name) const {
  return find_field(fields, name);
}

StatusOr<R16Format> r16_format(const Codec& codec, uint64_t cols) {
  CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
  R16Format format;
  format.block = shape.form->block;
  format.blocks = shape.blocks;
  format.header_bytes = shape.header_bytes;
  format.block_bytes = shape.form->block_bytes;
  format.tensor_bytes = shape.tensor_bytes;
  format.header = shape.header_fields();
  format.fields.assign(shape.form->fields.begin(), shape.form->fields.end());
  return format;
}

StatusOr<uint64_t> packed_bytes(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t payload, codec.payload_bytes(codec, rows, cols));
  if (layout == LayoutId::kVerbatim)
    return payload;
  CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
  const std::optional<uint64_t> size = checked_add(checked_mul(rows, shape.row_bytes()), shape.tensor_bytes);
  if (!size)
    return invalid(std::string(codec.name) + " tensor of " + std::to_string(rows) + " x " + std::to_string(cols) +
                   " is larger than 64 bits can count when packed");
  return *size;
}

Status pack(const Codec& codec, LayoutId layout, std::span<const uint8_t> payload, uint64_t source_rows, uint64_t cols,
            std::span<const uint32_t> row_map, std::span<uint8_t> out) {
  const uint64_t rows = row_map.empty() ? source_rows : row_map.size();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t payload_size, codec.payload_bytes(codec, source_rows, cols));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t packed_size, packed_bytes(codec, layout, rows, cols));
  if (payload.size() != payload_size)
    return invalid(std::string(codec.name) + " payload has " + std::to_string(payload.size()) +
                   " bytes, its shape needs " + std::to_string(payload_size));
  if (out.size() != packed_size)
    return internal_error("packing needs a buffer of " + std::to_string(packed_size) + " bytes and got one of " +
                          std::to_string(out.size()));
  for (const uint32_t row : row_map)
    if (row >= source_rows)
      return internal_error("row map names row " + std::to_string(row) + " of a tensor of " +
                            std::to_string(source_rows) + " rows");
  if (layout == LayoutId::kVerbatim)
    return pack_verbatim(codec, payload, source_rows, cols, row_map, out);
  CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
  pack_rows(shape, payload, source_rows, rows, row_map, out);
  return {};
}

Status decode_packed_row(const Codec& codec, LayoutId layout, std::span<const uint8_t> packed, uint64_t rows,
                         uint64_t cols, uint64_t row, float* out) {
  if (!codec.decode_row)
    return unsupported(std::string(codec.name) + " is raw data and has no weights to decode");
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t size, packed_bytes(codec, layout, rows, cols));
  if (packed.size() < size)
    return invalid("packed " + std::string(codec.name) + " tensor has " + std::to_string(packed.size()) +
                   " bytes, its shape needs " + std::to_string(size));
  if (row >= rows)
    return invalid("row " + std::to_string(row) + " of a tensor of " + std::to_string(rows) + " rows was asked for");
  if (layout == LayoutId::kVerbatim) {
    codec.decode_row(packed.data(), rows, cols, row, out);
    return {};
  }
  CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
  const uint64_t first_row = row / kRowGroup * kRowGroup;
  const PackedRow at = {
      .form = *shape.form,
      .group = packed.data() + shape.tensor_bytes + first_row * shape.row_bytes(),
      .tensor = packed.data(),
      .rows = static_cast<uint32_t>(std::min<uint64_t>(kRowGroup, rows - first_row)),
      .lane = static_cast<uint32_t>(row - first_row),
      .header_bytes = shape.header_bytes,
  };
  const uint64_t chunk = kDecodeChunk / shape.form->block;
  for (uint64_t first = 0; first < shape.blocks; first += chunk) {
    const uint64_t start = first * shape.form->block;
    const uint64_t weights = std::min(kDecodeChunk, cols - start);
    shape.form->decode(at, first, std::min(chunk, shape.blocks - first), weights, out + start);
  }
  return {};
}

} // namespace cortiq::formats
