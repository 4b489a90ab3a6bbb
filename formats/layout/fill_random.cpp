#include <algorithm>
#include <cstring>
#include <string>

#include "formats/layout/layout.h"
#include "formats/layout/planes.h"
#include "formats/layout/row_group.h"
#include "formats/layout/stream_form.h"

namespace cortiq::formats {
namespace {

// Row r of a tensor comes from stream r, so that a tensor has the same weights in every layout and rows could be made
// in any order; the shared part comes from a stream that no row has.
constexpr uint64_t kSharedStream = UINT64_MAX;

void fill_shared(const RecordForm& form, uint64_t cols, uint64_t seed, uint8_t* shared) {
  if (!form.fill_shared)
    return;
  RandomStream random(seed, kSharedStream);
  form.fill_shared(random, cols, shared);
}

void fill_verbatim(const RecordForm& form, uint64_t rows, uint64_t cols, uint64_t seed, std::span<uint8_t> out) {
  const PlaneSizes sizes = form.planes(cols);
  for (uint64_t r = 0; r < rows; ++r) {
    RandomStream random(seed, r);
    form.fill_row(random, cols, row_planes(sizes, out.data(), rows, r));
  }
  fill_shared(form, cols, seed, out.data() + rows * sizes.row_total());
}

void fill_groups(const RecordShape& shape, uint64_t rows, uint64_t seed, std::span<uint8_t> out) {
  const RecordForm& form = *shape.form;
  const PlaneSizes sizes = form.planes(shape.cols);
  uint8_t* at = out.data();
  std::memset(at, 0, shape.tensor_bytes);
  fill_shared(form, shape.cols, seed, at);
  at += shape.tensor_bytes;
  std::vector<uint8_t> payload(kRowGroup * sizes.row_total());
  std::vector<uint8_t> scratch;
  RowPlanes group[kRowGroup];
  for (uint64_t first = 0; first < rows; first += kRowGroup) {
    const uint32_t count = static_cast<uint32_t>(std::min<uint64_t>(kRowGroup, rows - first));
    for (uint32_t r = 0; r < count; ++r) {
      RandomStream random(seed, first + r);
      form.fill_row(random, shape.cols, row_planes(sizes, payload.data(), count, r));
      group[r] = row_planes(sizes, static_cast<const uint8_t*>(payload.data()), count, r);
    }
    pack_group(shape, group, count, scratch, at);
    at += count * shape.row_bytes();
  }
}

Status fill_planes(const Codec& codec, const RecordShape& shape, uint64_t rows, uint64_t seed, std::span<uint8_t> out) {
  CORTIQ_ASSIGN_OR_RETURN(const Planes planes, planes_of(codec, shape, rows));
  const PlaneSizes sizes = shape.form->planes(shape.cols);
  std::memset(out.data(), 0, planes.end);
  fill_shared(*shape.form, shape.cols, seed, out.data());
  write_codebook(codec, shape, out.data());
  std::vector<uint8_t> payload(sizes.row_total());
  std::vector<uint8_t> record(shape.row_bytes());
  std::vector<uint8_t> scratch;
  for (uint64_t r = 0; r < rows; ++r) {
    RandomStream random(seed, r);
    shape.form->fill_row(random, shape.cols, row_planes(sizes, payload.data(), 1, 0));
    const RowPlanes row = row_planes(sizes, static_cast<const uint8_t*>(payload.data()), 1, 0);
    pack_group(shape, &row, 1, scratch, record.data());
    scatter_row(shape, planes, r, record.data(), out.data());
  }
  return {};
}

} // namespace

Status fill_random(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols, uint64_t seed,
                   std::span<uint8_t> out) {
  const RecordForm* form = find_record_form(codec.id);
  const StreamForm* stream = find_stream_form(codec.id);
  if (!form && !stream)
    return unsupported(std::string(codec.name) + " is raw data, which random bytes cannot stand for");
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t size, packed_bytes(codec, layout, rows, cols));
  if (out.size() != size)
    return internal_error("filling needs a buffer of " + std::to_string(size) + " bytes and got one of " +
                          std::to_string(out.size()));
  if (size == 0)
    return {};
  if (stream) {
    RandomStream random(seed, kSharedStream);
    const StreamPlanes* planes = find_stream_planes(codec.id, layout);
    if (!planes) {
      stream->fill(random, rows, cols, out.data());
      return {};
    }
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, packed_bytes(codec, LayoutId::kVerbatim, rows, cols));
    std::vector<uint8_t> payload(bytes);
    stream->fill(random, rows, cols, payload.data());
    planes->pack(payload, rows, cols, {}, out.data());
    return {};
  }
  if (form->overlay) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t start, overlay_offset(codec, layout, rows, cols));
    std::memset(out.data(), 0, start);
    form->overlay->write_empty(rows, out.data() + start);
  }
  if (layout != LayoutId::kVerbatim) {
    CORTIQ_ASSIGN_OR_RETURN(const RecordShape shape, record_shape(codec, cols));
    if (layout == LayoutId::kPlanes)
      return fill_planes(codec, shape, rows, seed, out);
    fill_groups(shape, rows, seed, out);
    return {};
  }
  // Groups that run over row ends: the tensor is one row of whole groups, the last one's padding filled too.
  if (codec.flat && cols % codec.block != 0)
    fill_verbatim(*form, 1, (rows * cols + codec.block - 1) / codec.block * codec.block, seed, out);
  else
    fill_verbatim(*form, rows, cols, seed, out);
  return {};
}

} // namespace cortiq::formats
