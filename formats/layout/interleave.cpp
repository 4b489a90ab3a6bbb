#include "formats/layout/interleave.h"

#include <cassert>
#include <cstring>

#include "formats/layout/layout.h"

namespace cortiq::formats {
namespace {

template <class Unit>
Unit load(const uint8_t* p) {
  Unit value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <class Unit>
void store(uint8_t* p, Unit value) {
  std::memcpy(p, &value, sizeof value);
}

// kRows = 0 takes the count at run time; full groups have it as a constant, so that the inner loop unrolls.
template <class Unit, uint32_t kRows>
void weave(const uint8_t* records, size_t stride, uint32_t row_count, uint64_t count, uint8_t* out) {
  const uint32_t rows = kRows ? kRows : row_count;
  for (uint64_t u = 0; u < count; ++u, out += rows * sizeof(Unit)) {
    const uint8_t* source = records + u * sizeof(Unit);
    for (uint32_t r = 0; r < rows; ++r)
      store(out + r * sizeof(Unit), load<Unit>(source + r * stride));
  }
}

template <class Unit>
void weave_rows(const uint8_t* records, size_t stride, uint32_t rows, uint64_t count, uint8_t* out) {
  if (rows == kRowGroup)
    weave<Unit, kRowGroup>(records, stride, rows, count, out);
  else
    weave<Unit, 0>(records, stride, rows, count, out);
}

template <class Unit>
void pick(const uint8_t* woven, uint32_t rows, uint32_t lane, uint64_t count, uint8_t* out) {
  woven += lane * sizeof(Unit);
  for (uint64_t u = 0; u < count; ++u)
    store(out + u * sizeof(Unit), load<Unit>(woven + u * rows * sizeof(Unit)));
}

/// Calls `action` with a number of `unit` bytes, for its type.
template <class Action>
void with_unit(uint32_t unit, Action action) {
  switch (unit) {
  case 1:
    return action(uint8_t{});
  case 2:
    return action(uint16_t{});
  case 4:
    return action(uint32_t{});
  }
  assert(false && "units have 1, 2 or 4 bytes");
}

} // namespace

void interleave(const uint8_t* records, size_t stride, uint32_t rows, uint32_t unit, uint64_t count, uint8_t* out) {
  with_unit(unit, [&]<class Unit>(Unit) { weave_rows<Unit>(records, stride, rows, count, out); });
}

void deinterleave(const uint8_t* woven, uint32_t rows, uint32_t lane, uint32_t unit, uint64_t count, uint8_t* out) {
  with_unit(unit, [&]<class Unit>(Unit) { pick<Unit>(woven, rows, lane, count, out); });
}

} // namespace cortiq::formats
