#include "formats/layout/row_group.h"

#include <algorithm>
#include <string>

#include "formats/checked_math.h"
#include "formats/layout/interleave.h"

namespace cortiq::formats {
namespace {

// Keeps every size of one row in 32 bits; the widest rows of real models have about 2^18 weights.
constexpr uint64_t kMaxCols = uint64_t{1} << 28;

// Records of a group that are made before they are woven, so that both steps stay in the first-level cache.
constexpr uint64_t kStagingBytes = 1024;
// The distance of two staged rows: not a power of two, which would put the same place of all rows into few cache sets.
constexpr uint64_t kStagingStride = kStagingBytes + 64;

void weave_fields(const RunList& runs, uint64_t count, uint32_t record_bytes, const uint8_t* staged, uint32_t rows,
                  uint8_t* out) {
  if (runs.uniform()) {
    interleave(staged, kStagingStride, rows, runs.begin()->unit, runs.begin()->count * count, out);
    return;
  }
  for (uint64_t b = 0; b < count; ++b, staged += record_bytes, out += static_cast<uint64_t>(rows) * record_bytes)
    for (const UnitRun& run : runs)
      interleave(staged + run.offset, kStagingStride, rows, run.unit, run.count, out + rows * run.offset);
}

void pack_headers(const RecordShape& shape, const RowPlanes* rows, uint32_t count, std::vector<uint8_t>& scratch,
                  uint8_t* out) {
  if (shape.header_bytes == 0)
    return;
  scratch.resize(static_cast<size_t>(count) * shape.header_bytes);
  for (uint32_t r = 0; r < count; ++r)
    shape.form->write_header(rows[r], shape.cols, scratch.data() + static_cast<size_t>(r) * shape.header_bytes);
  for (const LayoutField& field : shape.header_fields())
    interleave(scratch.data() + field.offset, shape.header_bytes, count, field.unit, field.count,
               out + static_cast<uint64_t>(count) * field.offset);
}

} // namespace

std::vector<LayoutField> RecordShape::header_fields() const {
  std::vector<LayoutField> fields(form->header.begin(), form->header.end());
  if (code_words != 0)
    fields.push_back(
        {"codes", static_cast<uint32_t>(header_bytes - 4 * code_words), 4, static_cast<uint32_t>(code_words)});
  return fields;
}

StatusOr<RecordShape> record_shape(const Codec& codec, uint64_t cols) {
  const std::string name(codec.name);
  const RecordForm* form = find_record_form(codec.id);
  if (!form)
    return unsupported(name + " has no row-group form; keep the tensor verbatim");
  if (codec.flat && cols % codec.block != 0)
    return unsupported(name + " rows of " + std::to_string(cols) + " weights are not whole groups of " +
                       std::to_string(codec.block) +
                       ", so that groups cross row ends and rows cannot be taken apart; keep the tensor verbatim");
  if (const StatusOr<uint64_t> payload = codec.payload_bytes(codec, 1, cols); !payload.ok())
    return payload.status();
  if (cols == 0 || cols > kMaxCols)
    return unsupported(name + " rows of " + std::to_string(cols) + " weights have no row-group form: 1 to " +
                       std::to_string(kMaxCols) + " are possible");
  RecordShape shape = {};
  shape.form = form;
  shape.cols = cols;
  shape.blocks = ceil_div(cols, form->block);
  for (const LayoutField& field : form->header)
    shape.header_bytes = std::max(shape.header_bytes, field.offset + field.unit * field.count);
  if (form->blocks_per_code_word != 0) {
    shape.code_words = ceil_div(shape.blocks, form->blocks_per_code_word);
    shape.header_bytes += static_cast<uint32_t>(4 * shape.code_words);
  }
  shape.tensor_bytes = ceil_div(form->shared_bytes_per_col * cols + form->shared_bytes, 64) * 64;
  return shape;
}

void pack_group(const RecordShape& shape, const RowPlanes* rows, uint32_t count, std::vector<uint8_t>& scratch,
                uint8_t* out) {
  const RecordForm& form = *shape.form;
  alignas(64) uint8_t staged[kRowGroup * kStagingStride];
  pack_headers(shape, rows, count, scratch, out);
  const RunList runs(form.fields);
  const uint64_t chunk = kStagingBytes / form.block_bytes;
  for (uint64_t first = 0; first < shape.blocks; first += chunk) {
    const uint64_t blocks = std::min(chunk, shape.blocks - first);
    for (uint32_t r = 0; r < count; ++r)
      form.write_records(rows[r], shape.cols, first, blocks, staged + r * kStagingStride);
    weave_fields(runs, blocks, form.block_bytes, staged, count,
                 out + count * (shape.header_bytes + first * form.block_bytes));
  }
}

} // namespace cortiq::formats
