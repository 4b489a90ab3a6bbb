#pragma once

// Overlays: the weights that q1s and q1t keep beside their tiles, because the tiles' few levels miss them by too much.

#include <cstdint>
#include <optional>
#include <span>

#include "formats/checked_math.h"
#include "formats/codec/half.h"
#include "formats/status.h"

namespace cortiq::formats {

// q1s: u32 count, then entries of u32 index (row * cols + column) and f16 value.
inline constexpr uint64_t kQ1SOverlayHead = 4;
inline constexpr uint64_t kQ1SEntryBytes = 6;

struct Q1SEntry {
  uint32_t index;
  uint16_t value;
};

inline Q1SEntry q1s_entry(const uint8_t* overlay, uint64_t entry) {
  const uint8_t* at = overlay + kQ1SOverlayHead + kQ1SEntryBytes * entry;
  return {load_u32(at), load_u16(at + 4)};
}

// q1t: a table of rows + 1 u32, the entries of row r are table[r] … table[r + 1] - 1; then entries of u16 column and
// f16 value.
inline constexpr uint64_t kQ1TEntryBytes = 4;

struct Q1TEntry {
  uint16_t column;
  uint16_t value;
};

inline std::optional<uint64_t> q1t_table_bytes(uint64_t rows) {
  return checked_mul(checked_add(rows, 1), 4);
}

inline Q1TEntry q1t_entry(const uint8_t* overlay, uint64_t rows, uint64_t entry) {
  const uint8_t* at = overlay + 4 * (rows + 1) + kQ1TEntryBytes * entry;
  return {load_u16(at), load_u16(at + 2)};
}

/// Holds an overlay against the shape of its tensor, so that the decodes can trust it. Messages continue a sentence
/// that starts with the tensor's name. `strict` also refuses entries of q1s that no weight belongs to.
Status check_q1s_overlay(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols, bool strict);
Status check_q1t_overlay(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols);

/// Puts the entries of row `row` into its decoded weights.
void apply_q1t_overlay(const uint8_t* overlay, uint64_t rows, uint64_t row, float* out);

} // namespace cortiq::formats
