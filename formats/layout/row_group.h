#pragma once

// The sizes of one codec's R16 form, and the packing of one group: what packing and filling share.

#include <cstdint>
#include <vector>

#include "formats/layout/record_form.h"
#include "formats/status.h"

namespace cortiq::formats {

/// R16Format without its lists: cheap enough to make for a single row.
struct RecordShape {
  const RecordForm* form;
  uint64_t cols;
  uint64_t blocks;
  uint64_t code_words; ///< dwords of the header's "codes"
  uint32_t header_bytes;
  uint64_t tensor_bytes;

  uint64_t row_bytes() const { return header_bytes + blocks * form->block_bytes; }
  std::vector<LayoutField> header_fields() const;
};

/// Fails where r16_format() does, with its sentence.
StatusOr<RecordShape> record_shape(const Codec& codec, uint64_t cols);

/// Packs `count` rows (1 … kRowGroup) as one group at `out`, count * row_bytes() bytes. `scratch` is the caller's to
/// keep from group to group.
void pack_group(const RecordShape& shape, const RowPlanes* rows, uint32_t count, std::vector<uint8_t>& scratch,
                uint8_t* out);

} // namespace cortiq::formats
