#include "formats/layout/planes.h"

#include <algorithm>
#include <cstring>

#include "formats/checked_math.h"
#include "formats/codec/payload_size.h"
#include "formats/layout/codebook.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kPlaneAlignment = 16;
constexpr uint64_t kWovenRun = 32;  // blocks
constexpr uint64_t kWovenHalf = 16; // bytes

/// Calls `copy(place in the plane's row, place in the record, bytes)` for every piece of one plane's row.
template <class Copy>
void for_each_piece(const RecordShape& shape, const Plane& plane, Copy copy) {
  const uint64_t bytes = static_cast<uint64_t>(plane.field.unit) * plane.field.count;
  if (plane.header) {
    copy(0, plane.field.offset, bytes);
    return;
  }
  for (uint64_t b = 0; b < shape.blocks; ++b) {
    const uint64_t record = shape.header_bytes + b * shape.form->block_bytes + plane.field.offset;
    if (!plane.woven) {
      copy(b * bytes, record, bytes);
      continue;
    }
    const uint64_t first = b / kWovenRun * kWovenRun;
    const uint64_t run = std::min(kWovenRun, shape.blocks - first);
    for (uint64_t half = 0; half < 2; ++half)
      copy(first * bytes + (half * run + b - first) * kWovenHalf, record + half * kWovenHalf, kWovenHalf);
  }
}

/// A row's header and blocks with every block as `reorder` makes it.
std::vector<uint8_t> reordered(const RecordShape& shape, const uint8_t* record,
                               void (*reorder)(const uint8_t*, uint8_t*)) {
  const uint64_t each = shape.form->block_bytes;
  std::vector<uint8_t> out(shape.header_bytes + shape.blocks * each);
  std::memcpy(out.data(), record, shape.header_bytes);
  for (uint64_t at = shape.header_bytes; at < out.size(); at += each)
    reorder(record + at, out.data() + at);
  return out;
}

} // namespace

StatusOr<Planes> planes_of(const Codec& codec, const RecordShape& shape, uint64_t rows) {
  Planes out;
  std::optional<uint64_t> at = shape.tensor_bytes + codebook_bytes(codec.id);
  const auto add = [&](const LayoutField& field, uint64_t units, bool header) {
    const uint64_t bytes = static_cast<uint64_t>(field.unit) * field.count;
    at = at ? checked_round_up(*at, kPlaneAlignment) : at;
    if (!at)
      return;
    const bool woven = !header && shape.form->block == kWovenRun && bytes == 2 * kWovenHalf;
    out.planes.push_back({field, *at, units * bytes, header, woven});
    at = checked_add(at, checked_mul(rows, units * bytes));
  };
  for (const LayoutField& field : shape.header_fields())
    add(field, 1, true);
  for (const LayoutField& field : shape.form->plane_order ? shape.form->plane_order->fields : shape.form->fields)
    add(field, shape.blocks, false);
  CORTIQ_ASSIGN_OR_RETURN(out.end, size_or_overflow(codec, rows, shape.cols, at));
  return out;
}

void write_codebook(const Codec& codec, const RecordShape& shape, uint8_t* tensor) {
  const std::vector<uint16_t> entries = codebook(codec.id);
  if (!entries.empty())
    std::memcpy(tensor + shape.tensor_bytes, entries.data(), entries.size() * sizeof(entries[0]));
}

void scatter_row(const RecordShape& shape, const Planes& planes, uint64_t row, const uint8_t* record, uint8_t* tensor) {
  std::vector<uint8_t> ordered;
  if (const PlaneOrder* order = shape.form->plane_order) {
    ordered = reordered(shape, record, order->to_planes);
    record = ordered.data();
  }
  for (const Plane& plane : planes.planes) {
    uint8_t* to = tensor + plane.start + row * plane.row_bytes;
    for_each_piece(shape, plane, [&](uint64_t place, uint64_t source, uint64_t bytes) {
      std::memcpy(to + place, record + source, bytes);
    });
  }
}

void gather_row(const RecordShape& shape, const Planes& planes, uint64_t row, const uint8_t* tensor, uint8_t* record) {
  for (const Plane& plane : planes.planes) {
    const uint8_t* from = tensor + plane.start + row * plane.row_bytes;
    for_each_piece(shape, plane, [&](uint64_t place, uint64_t target, uint64_t bytes) {
      std::memcpy(record + target, from + place, bytes);
    });
  }
  if (const PlaneOrder* order = shape.form->plane_order) {
    const std::vector<uint8_t> canonical = reordered(shape, record, order->from_planes);
    std::memcpy(record, canonical.data(), canonical.size());
  }
}

} // namespace cortiq::formats
