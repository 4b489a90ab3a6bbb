#include "formats/layout/record_form.h"

#include <cassert>

#include "formats/layout/interleave.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

template <class Planes, class Byte>
Planes planes_of_row(const PlaneSizes& sizes, Byte* payload, uint64_t rows, uint64_t row) {
  Planes planes;
  for (int p = 0; p < kMaxPlanes; ++p) {
    planes.plane[p] = payload + row * sizes.row_bytes[p];
    payload += rows * sizes.row_bytes[p];
  }
  return planes;
}

} // namespace

const RecordForm* find_record_form(CodecId codec) {
  static const RecordForm* const kForms[] = {
      &kBF16Form,   &kBLRUForm,    &kBLRVForm,   &kF16Form,        &kF32Form,     &kFV5BForm,  &kFV5Form,
      &kG80Form,    &kI2SForm,     &kI8SForm,    &kIQ1MForm,       &kIQ1SForm,    &kIQ2SForm,  &kIQ2XSForm,
      &kIQ2XXSForm, &kIQ3SForm,    &kIQ3XXSForm, &kIQ4NLForm,      &kIQ4XSForm,   &kMXFP4Form, &kMXFP4GGMLForm,
      &kNVFP4Form,  &kPTQ10Form,   &kQ10Form,    &kQ1Form,         &kQ1GForm,     &kQ1SForm,   &kQ1TForm,
      &kQ20Form,    &kQ20G128Form, &kQ2KForm,    &kQ2TPAffineForm, &kQ2TPForm,    &kQ3KForm,   &kQ40Form,
      &kQ41Form,    &kQ4BlockForm, &kQ4KForm,    &kQ4TPForm,       &kQ4TiledForm, &kQ50Form,   &kQ51Form,
      &kQ5KForm,    &kQ6KForm,     &kQ80Form,    &kQ82FForm,       &kQ8KForm,     &kQ8RowForm, &kSTQ10Form,
      &kTQ10Form,   &kTQ20Form,
  };
  for (const RecordForm* form : kForms)
    if (form->codec == codec)
      return form;
  return nullptr;
}

RowPlanes row_planes(const PlaneSizes& sizes, const uint8_t* payload, uint64_t rows, uint64_t row) {
  return planes_of_row<RowPlanes>(sizes, payload, rows, row);
}

MutableRowPlanes row_planes(const PlaneSizes& sizes, uint8_t* payload, uint64_t rows, uint64_t row) {
  return planes_of_row<MutableRowPlanes>(sizes, payload, rows, row);
}

RunList::RunList(std::span<const LayoutField> fields) {
  for (const LayoutField& field : fields) {
    UnitRun* last = count_ ? &runs_[count_ - 1] : nullptr;
    if (last && last->unit == field.unit && last->offset + last->unit * last->count == field.offset) {
      last->count += field.count;
      continue;
    }
    assert(count_ < static_cast<int>(std::size(runs_)));
    runs_[count_++] = {field.offset, field.unit, field.count};
  }
}

void PackedRow::read_header(uint32_t offset, uint32_t unit, uint64_t count, uint8_t* out) const {
  deinterleave(group + static_cast<uint64_t>(rows) * offset, rows, lane, unit, count, out);
}

void PackedRow::read_records(uint64_t first, uint64_t count, uint8_t* out) const {
  const RunList runs(form.fields);
  const uint8_t* woven = group + rows * (header_bytes + first * form.block_bytes);
  if (runs.uniform())
    return deinterleave(woven, rows, lane, runs.begin()->unit, runs.begin()->count * count, out);
  for (uint64_t b = 0; b < count; ++b, woven += rows * form.block_bytes, out += form.block_bytes)
    for (const UnitRun& run : runs)
      deinterleave(woven + rows * run.offset, rows, lane, run.unit, run.count, out + run.offset);
}

void decode_copied(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t blocks[kDecodeChunkBytes];
  row.read_records(first, count, blocks);
  codec_info(row.form.codec).decode_row(blocks, 1, weights, 0, out);
}

} // namespace cortiq::formats
