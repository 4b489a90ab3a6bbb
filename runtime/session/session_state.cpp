#include "runtime/session/session_state.h"

#include <cstring>

namespace cortiq::runtime {
namespace {

/// Columns [first, last) of `rows` rows of sixteen elements.
void copy_columns(uint8_t* to, const uint8_t* from, uint64_t rows, uint64_t element, uint64_t first, uint64_t last) {
  const uint64_t stride = kKvGroupPositions * element;
  for (uint64_t row = 0; row < rows; ++row)
    std::memcpy(to + row * stride + first * element, from + row * stride + first * element, (last - first) * element);
}

/// Whether none of `count` words has all bits of `exponent`.
template <class Word>
bool finite_words(const uint8_t* bytes, uint64_t count, Word exponent) {
  bool finite = true;
  for (uint64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
    finite &= (word & exponent) != exponent;
  }
  return finite;
}

bool finite_f32(const uint8_t* bytes, uint64_t count) {
  return finite_words<uint32_t>(bytes, count, 0x7f800000u);
}

} // namespace

void copy_positions(const KvShape& shape, KvType type, KvGroupPlace to, KvGroupPlace from, uint64_t first,
                    uint64_t last) {
  const uint64_t row = shape.value_row_bytes(type);
  std::memcpy(to.values + first * row, from.values + first * row, (last - first) * row);
  if (type != KvType::kQ8) {
    copy_columns(to.keys, from.keys, shape.k_dim, type == KvType::kF16 ? 2 : 4, first, last);
    return;
  }
  // Of every 32 dimensions their codes, then the sixteen factors.
  constexpr uint64_t codes = kKvGroup * kKvGroupPositions, all = codes + kKvGroupPositions * sizeof(float);
  for (uint64_t at = 0; at < shape.key_group_bytes(type); at += all) {
    copy_columns(to.keys + at, from.keys + at, kKvGroup, 1, first, last);
    copy_columns(to.keys + at + codes, from.keys + at + codes, 1, sizeof(float), first, last);
  }
}

bool all_finite(const KvShape& shape, KvType type, KvGroupPlace group) {
  const uint64_t keys = shape.key_group_bytes(type), row = shape.value_row_bytes(type);
  if (type == KvType::kF32)
    return finite_f32(group.keys, keys / 4) && finite_f32(group.values, kKvGroupPositions * row / 4);
  if (type == KvType::kF16)
    return finite_words<uint16_t>(group.keys, keys / 2, 0x7c00) &&
           finite_words<uint16_t>(group.values, kKvGroupPositions * row / 2, 0x7c00);
  constexpr uint64_t codes = kKvGroup * kKvGroupPositions, all = codes + kKvGroupPositions * sizeof(float);
  bool finite = true;
  for (uint64_t at = 0; at < keys; at += all)
    finite &= finite_f32(group.keys + at + codes, kKvGroupPositions);
  for (uint64_t position = 0; position < kKvGroupPositions; ++position)
    finite &= finite_f32(group.values + position * row, (shape.v_stride() + kKvGroup - 1) / kKvGroup);
  return finite;
}

bool all_finite(std::span<const float> values) {
  return finite_f32(reinterpret_cast<const uint8_t*>(values.data()), values.size());
}

} // namespace cortiq::runtime
