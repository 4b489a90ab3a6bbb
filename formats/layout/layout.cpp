#include "formats/layout/layout.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <string>

#include "formats/checked_math.h"
#include "formats/codec/payload_size.h"
#include "formats/layout/codebook.h"
#include "formats/layout/planes.h"
#include "formats/layout/row_group.h"
#include "formats/layout/stream_form.h"

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

/// Copies the rows of `row_map`, plane by plane, and the shared part. An overlay is not among them.
void copy_rows(const PlaneSizes& sizes, std::span<const uint8_t> payload, uint64_t source_rows,
               std::span<const uint32_t> row_map, std::span<uint8_t> out) {
  for (uint64_t r = 0; r < row_map.size(); ++r) {
    const RowPlanes from = row_planes(sizes, payload.data(), source_rows, row_map[r]);
    const MutableRowPlanes to = row_planes(sizes, out.data(), row_map.size(), r);
    for (int p = 0; p < kMaxPlanes; ++p)
      if (sizes.row_bytes[p] != 0)
        std::memcpy(to.plane[p], from.plane[p], sizes.row_bytes[p]);
  }
  if (sizes.shared_bytes != 0)
    std::memcpy(out.data() + row_map.size() * sizes.row_total(), payload.data() + source_rows * sizes.row_total(),
                sizes.shared_bytes);
}

const OverlayForm* find_overlay(const Codec& codec) {
  const RecordForm* form = find_record_form(codec.id);
  return form ? form->overlay : nullptr;
}

/// The part of a payload that lies behind the rows' planes.
std::span<const uint8_t> payload_overlay(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows,
                                         uint64_t cols) {
  return payload.subspan(rows * payload_planes(codec, cols).row_total());
}

/// The bytes of a packed tensor's shared part and rows.
StatusOr<uint64_t> rows_end(const Codec& codec, LayoutId layout, const RecordShape& shape, uint64_t rows) {
  if (layout == LayoutId::kPlanes) {
    CORTIQ_ASSIGN_OR_RETURN(const Planes planes, planes_of(codec, shape, rows));
    return planes.end;
  }
  return size_or_overflow(codec, rows, shape.cols,
                          checked_add(checked_mul(rows, shape.row_bytes()), shape.tensor_bytes));
}

/// Where an overlay starts: behind the rows of the file's form, or behind groups or planes at the next multiple of 64.
StatusOr<uint64_t> overlay_start(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols) {
  if (layout == LayoutId::kVerbatim)
    return rows * payload_planes(codec, cols).row_total();
  CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t end, rows_end(codec, layout, shape, rows));
  return size_or_overflow(codec, rows, cols, checked_round_up(end, 64));
}

/// Row indices 0 … rows - 1.
std::vector<uint32_t> identity(uint64_t rows) {
  std::vector<uint32_t> map(rows);
  std::iota(map.begin(), map.end(), 0u);
  return map;
}

/// The overlay of the rows of `row_map`, as packed tensors have it.
StatusOr<std::vector<uint8_t>> packed_overlay(const Codec& codec, std::span<const uint8_t> payload,
                                              uint64_t source_rows, uint64_t cols, std::span<const uint32_t> row_map) {
  return find_overlay(codec)->gather(payload_overlay(codec, payload, source_rows, cols), source_rows, cols, row_map);
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

void pack_planes(const Codec& codec, const RecordShape& shape, const Planes& planes, std::span<const uint8_t> payload,
                 uint64_t source_rows, uint64_t rows, std::span<const uint32_t> row_map, uint8_t* out) {
  const PlaneSizes sizes = shape.form->planes(shape.cols);
  std::memset(out, 0, shape.tensor_bytes);
  if (sizes.shared_bytes != 0)
    std::memcpy(out, payload.data() + source_rows * sizes.row_total(), sizes.shared_bytes);
  write_codebook(codec, shape, out);
  uint64_t written = shape.tensor_bytes + codebook_bytes(codec.id);
  for (const Plane& plane : planes.planes) {
    std::memset(out + written, 0, plane.start - written);
    written = plane.start + rows * plane.row_bytes;
  }
  std::vector<uint8_t> scratch;
  std::vector<uint8_t> record(shape.row_bytes());
  for (uint64_t r = 0; r < rows; ++r) {
    const RowPlanes row = row_planes(sizes, payload.data(), source_rows, row_map.empty() ? r : row_map[r]);
    pack_group(shape, &row, 1, scratch, record.data());
    scatter_row(shape, planes, r, record.data(), out);
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
  if (const StreamPlanes* planes = find_stream_planes(codec.id, layout))
    return planes->least_bytes(codec, rows, cols);
  CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
  if (const OverlayForm* overlay = shape.form->overlay) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t start, overlay_start(codec, layout, rows, cols));
    return size_or_overflow(codec, rows, cols, checked_add(start, overlay->least_bytes(rows)));
  }
  return rows_end(codec, layout, shape, rows);
}

StatusOr<uint64_t> overlay_offset(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols) {
  if (!find_overlay(codec))
    return internal_error(std::string(codec.name) + " has no overlay");
  CORTIQ_RETURN_IF_ERROR(packed_bytes(codec, layout, rows, cols).status());
  return overlay_start(codec, layout, rows, cols);
}

StatusOr<uint64_t> packed_payload_bytes(const Codec& codec, LayoutId layout, std::span<const uint8_t> payload,
                                        uint64_t source_rows, uint64_t cols, std::span<const uint32_t> row_map) {
  const uint64_t rows = row_map.empty() ? source_rows : row_map.size();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t least, packed_bytes(codec, layout, rows, cols));
  if (!codec.variable_size)
    return least;
  if (layout == LayoutId::kVerbatim && is_identity(row_map, source_rows))
    return payload.size();
  if (const StreamPlanes* planes = find_stream_planes(codec.id, layout))
    return planes->bytes(codec, payload, source_rows, cols, row_map);
  if (const StreamForm* stream = find_stream_form(codec.id))
    return stream->taken_bytes(payload, source_rows, cols, row_map);
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t start, overlay_start(codec, layout, rows, cols));
  CORTIQ_ASSIGN_OR_RETURN(
      const std::vector<uint8_t> overlay,
      packed_overlay(codec, payload, source_rows, cols, row_map.empty() ? identity(rows) : row_map));
  return start + overlay.size();
}

Status check_packed(const Codec& codec, LayoutId layout, std::span<const uint8_t> packed, uint64_t rows,
                    uint64_t cols) {
  if (layout == LayoutId::kVerbatim)
    return check_payload(codec, packed, rows, cols, /*strict=*/false);
  if (const StreamPlanes* planes = find_stream_planes(codec.id, layout))
    return planes->check(codec, packed, rows, cols);
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t least, packed_bytes(codec, layout, rows, cols));
  const OverlayForm* overlay = find_overlay(codec);
  if (!overlay)
    return expect_size(codec, packed.size(), least, rows, cols);
  CORTIQ_RETURN_IF_ERROR(expect_at_least(codec, packed.size(), least, rows, cols));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t start, overlay_start(codec, layout, rows, cols));
  return overlay->check(packed.subspan(start), rows, cols);
}

Status pack(const Codec& codec, LayoutId layout, std::span<const uint8_t> payload, uint64_t source_rows, uint64_t cols,
            std::span<const uint32_t> row_map, std::span<uint8_t> out) {
  const uint64_t rows = row_map.empty() ? source_rows : row_map.size();
  CORTIQ_RETURN_IF_ERROR(check_payload(codec, payload, source_rows, cols, /*strict=*/false)
                             .with_prefix(std::string(codec.name) + " payload"));
  for (const uint32_t row : row_map)
    if (row >= source_rows)
      return internal_error("row map names row " + std::to_string(row) + " of a tensor of " +
                            std::to_string(source_rows) + " rows");
  if (layout == LayoutId::kVerbatim && codec.flat && cols % codec.block != 0 && !is_identity(row_map, source_rows))
    return unsupported(std::string(codec.name) + " rows of " + std::to_string(cols) +
                       " weights share their groups, so that rows cannot be reordered or taken apart");
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t packed_size,
                          packed_payload_bytes(codec, layout, payload, source_rows, cols, row_map));
  if (out.size() != packed_size)
    return internal_error("packing needs a buffer of " + std::to_string(packed_size) + " bytes and got one of " +
                          std::to_string(out.size()));
  if (layout == LayoutId::kVerbatim && is_identity(row_map, source_rows)) {
    std::copy(payload.begin(), payload.end(), out.begin());
    return {};
  }
  if (const StreamPlanes* planes = find_stream_planes(codec.id, layout)) {
    planes->pack(payload, source_rows, cols, row_map, out.data());
    return {};
  }
  if (const StreamForm* stream = find_stream_form(codec.id)) {
    stream->take_rows(payload, source_rows, cols, row_map, out.data());
    return {};
  }
  uint64_t end = rows * payload_planes(codec, cols).row_total();
  if (layout == LayoutId::kVerbatim) {
    copy_rows(payload_planes(codec, cols), payload, source_rows, row_map, out);
  } else {
    CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
    CORTIQ_ASSIGN_OR_RETURN(end, rows_end(codec, layout, shape, rows));
    if (layout == LayoutId::kPlanes)
      pack_planes(codec, shape, *planes_of(codec, shape, rows), payload, source_rows, rows, row_map, out.data());
    else
      pack_rows(shape, payload, source_rows, rows, row_map, out);
  }
  if (!find_overlay(codec))
    return {};
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t start, overlay_start(codec, layout, rows, cols));
  CORTIQ_ASSIGN_OR_RETURN(
      const std::vector<uint8_t> overlay,
      packed_overlay(codec, payload, source_rows, cols, row_map.empty() ? identity(rows) : row_map));
  std::fill(out.begin() + static_cast<ptrdiff_t>(end), out.begin() + static_cast<ptrdiff_t>(start), uint8_t{0});
  std::copy(overlay.begin(), overlay.end(), out.begin() + static_cast<ptrdiff_t>(start));
  return {};
}

StatusOr<std::vector<uint8_t>> slice_planes(const Codec& codec, std::span<const uint8_t> packed, uint64_t rows,
                                            uint64_t cols, uint64_t first, uint64_t count) {
  CORTIQ_RETURN_IF_ERROR(check_packed(codec, LayoutId::kPlanes, packed, rows, cols));
  if (count == 0 || !range_fits(first, count, rows))
    return internal_error("rows that a tensor does not have were asked for");
  if (const StreamPlanes* planes = find_stream_planes(codec.id, LayoutId::kPlanes))
    return planes->slice(packed, rows, cols, first, count);
  CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
  CORTIQ_ASSIGN_OR_RETURN(const Planes from, planes_of(codec, shape, rows));
  CORTIQ_ASSIGN_OR_RETURN(const Planes to, planes_of(codec, shape, count));
  std::vector<uint8_t> out(to.end);
  std::copy_n(packed.begin(), shape.tensor_bytes + codebook_bytes(codec.id), out.begin());
  for (size_t p = 0; p < from.planes.size(); ++p)
    std::memcpy(out.data() + to.planes[p].start,
                packed.data() + from.planes[p].start + first * from.planes[p].row_bytes,
                count * from.planes[p].row_bytes);
  if (const OverlayForm* overlay = shape.form->overlay) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t start, overlay_start(codec, LayoutId::kPlanes, rows, cols));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t end, overlay_start(codec, LayoutId::kPlanes, count, cols));
    std::vector<uint32_t> taken(count);
    std::iota(taken.begin(), taken.end(), static_cast<uint32_t>(first));
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint8_t> entries,
                            overlay->gather(packed.subspan(start), rows, cols, taken));
    out.resize(end);
    out.insert(out.end(), entries.begin(), entries.end());
  }
  return out;
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
  if (const StreamPlanes* planes = find_stream_planes(codec.id, layout)) {
    CORTIQ_RETURN_IF_ERROR(planes->check(codec, packed, rows, cols));
    planes->decode_row(packed, rows, cols, row, out);
    return {};
  }
  CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
  const uint64_t first_row = row / kRowGroup * kRowGroup;
  std::vector<uint8_t> record;
  if (layout == LayoutId::kPlanes) {
    CORTIQ_ASSIGN_OR_RETURN(const Planes planes, planes_of(codec, shape, rows));
    record.resize(shape.row_bytes());
    gather_row(shape, planes, row, packed.data(), record.data());
  }
  const bool grouped = record.empty(); // a gathered row is a group of one
  const PackedRow at = {
      .form = *shape.form,
      .group = grouped ? packed.data() + shape.tensor_bytes + first_row * shape.row_bytes() : record.data(),
      .tensor = packed.data(),
      .rows = grouped ? static_cast<uint32_t>(std::min<uint64_t>(kRowGroup, rows - first_row)) : 1u,
      .lane = grouped ? static_cast<uint32_t>(row - first_row) : 0u,
      .header_bytes = shape.header_bytes,
  };
  const uint64_t chunk = kDecodeChunk / shape.form->block;
  for (uint64_t first = 0; first < shape.blocks; first += chunk) {
    const uint64_t start = first * shape.form->block;
    const uint64_t weights = std::min(kDecodeChunk, cols - start);
    shape.form->decode(at, first, std::min(chunk, shape.blocks - first), weights, out + start);
  }
  if (const OverlayForm* overlay = shape.form->overlay) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t start, overlay_start(codec, layout, rows, cols));
    overlay->apply(packed.data() + start, rows, cols, row, out);
  }
  return {};
}

} // namespace cortiq::formats
