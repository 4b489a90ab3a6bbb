#include "formats/codec/overlay.h"

#include <string>

namespace cortiq::formats {

Status check_q1s_overlay(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols, bool strict) {
  if (overlay.size() < kQ1SOverlayHead)
    return invalid("has no outlier count behind its tiles");
  const uint64_t count = load_u32(overlay.data());
  const uint64_t entries = overlay.size() - kQ1SOverlayHead;
  if (entries != kQ1SEntryBytes * count)
    return invalid("states an outlier count of " + std::to_string(count) + ", but its payload has " +
                   std::to_string(entries) + " bytes for them instead of " + std::to_string(kQ1SEntryBytes * count));
  for (uint64_t e = 0; strict && e < count; ++e)
    if (const uint32_t index = q1s_entry(overlay.data(), e).index; index >= rows * cols)
      return invalid("has an outlier at index " + std::to_string(index) + ", outside its " + std::to_string(rows) +
                     " x " + std::to_string(cols) + " weights");
  return {};
}

Status check_q1t_overlay(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols) {
  const std::optional<uint64_t> table_bytes = q1t_table_bytes(rows);
  if (!table_bytes || overlay.size() < *table_bytes)
    return invalid("has no whole table of outliers behind its tiles");
  const uint8_t* table = overlay.data();
  const uint64_t count = load_u32(table + 4 * rows);
  const uint64_t entries = overlay.size() - *table_bytes;
  if (entries != kQ1TEntryBytes * count)
    return invalid("has a byte length of " + std::to_string(entries) + " for its outliers, but its table counts " +
                   std::to_string(count) + " of " + std::to_string(kQ1TEntryBytes) + " bytes");
  if (load_u32(table) != 0)
    return invalid("does not start its table of outliers at 0");
  for (uint64_t r = 0; r < rows; ++r)
    if (load_u32(table + 4 * r) > load_u32(table + 4 * (r + 1)))
      return invalid("has a table of outliers that decreases at row " + std::to_string(r));
  for (uint64_t e = 0; e < count; ++e)
    if (const uint16_t column = q1t_entry(table, rows, e).column; column >= cols)
      return invalid("has an outlier in column " + std::to_string(column) + " of " + std::to_string(cols));
  return {};
}

void apply_q1t_overlay(const uint8_t* overlay, uint64_t rows, uint64_t row, float* out) {
  const uint64_t end = load_u32(overlay + 4 * (row + 1));
  for (uint64_t e = load_u32(overlay + 4 * row); e < end; ++e) {
    const Q1TEntry entry = q1t_entry(overlay, rows, e);
    out[entry.column] = half_to_float(entry.value);
  }
}

} // namespace cortiq::formats
