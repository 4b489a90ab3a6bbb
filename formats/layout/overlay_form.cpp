#include "formats/layout/overlay_form.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "formats/codec/overlay.h"

namespace cortiq::formats {
namespace {

struct Entry {
  uint64_t row;
  uint64_t column;
  uint64_t place; ///< in the file
  uint16_t value;
};

/// In the order of rows and columns; of several entries for one weight the last one stays, as it wins in the decode.
void sort_entries(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.row, a.column, a.place) < std::tie(b.row, b.column, b.place);
  });
  const auto same = [](const Entry& a, const Entry& b) { return a.row == b.row && a.column == b.column; };
  size_t kept = 0;
  for (size_t e = 0; e < entries.size(); ++e)
    if (e + 1 == entries.size() || !same(entries[e], entries[e + 1]))
      entries[kept++] = entries[e];
  entries.resize(kept);
}

std::span<const Entry> entries_of(const std::vector<Entry>& entries, uint64_t row) {
  const auto first = std::lower_bound(entries.begin(), entries.end(), row,
                                      [](const Entry& entry, uint64_t wanted) { return entry.row < wanted; });
  const auto last = std::upper_bound(first, entries.end(), row,
                                     [](uint64_t wanted, const Entry& entry) { return wanted < entry.row; });
  return {first, last};
}

void append(std::vector<uint8_t>& out, const void* bytes, size_t count) {
  const auto* first = static_cast<const uint8_t*>(bytes);
  out.insert(out.end(), first, first + count);
}

Status too_many(const char* codec) {
  return unsupported(std::string("the packed ") + codec + " tensor has more outliers than 32 bits can count");
}

// q1s

uint64_t q1s_least_bytes(uint64_t) {
  return kQ1SOverlayHead;
}
void q1s_write_empty(uint64_t, uint8_t* out) {
  store_u32(out, 0);
}

StatusOr<std::vector<uint8_t>> q1s_gather(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols,
                                          std::span<const uint32_t> row_map) {
  std::vector<Entry> entries;
  const uint32_t count = load_u32(overlay.data());
  entries.reserve(count);
  for (uint32_t e = 0; e < count; ++e)
    if (const Q1SEntry entry = q1s_entry(overlay.data(), e); entry.index / cols < rows)
      entries.push_back({entry.index / cols, entry.index % cols, e, entry.value});
  sort_entries(entries);
  std::vector<uint8_t> out(kQ1SOverlayHead);
  for (uint64_t r = 0; r < row_map.size(); ++r)
    for (const Entry& entry : entries_of(entries, row_map[r])) {
      const uint64_t index = r * cols + entry.column;
      if (index > UINT32_MAX)
        return unsupported("the packed q1s tensor has an outlier beyond its first 2^32 weights, which 32 bits cannot "
                           "address");
      const uint32_t narrow = static_cast<uint32_t>(index);
      append(out, &narrow, 4);
      append(out, &entry.value, 2);
    }
  const uint64_t kept = (out.size() - kQ1SOverlayHead) / kQ1SEntryBytes;
  if (kept > UINT32_MAX)
    return too_many("q1s");
  store_u32(out.data(), static_cast<uint32_t>(kept));
  return out;
}

Status q1s_check(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_q1s_overlay(overlay, rows, cols, /*strict=*/true));
  for (uint32_t e = 1; e < load_u32(overlay.data()); ++e)
    if (q1s_entry(overlay.data(), e).index <= q1s_entry(overlay.data(), e - 1).index)
      return invalid("has outliers out of order at entry " + std::to_string(e));
  return {};
}

void q1s_apply(const uint8_t* overlay, uint64_t, uint64_t cols, uint64_t row, float* out) {
  const uint64_t first = row * cols;
  uint64_t low = 0;
  const uint64_t count = load_u32(overlay);
  for (uint64_t high = count; low < high;) {
    const uint64_t middle = low + (high - low) / 2;
    if (q1s_entry(overlay, middle).index < first)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < count && q1s_entry(overlay, low).index - first < cols; ++low)
    out[q1s_entry(overlay, low).index - first] = half_to_float(q1s_entry(overlay, low).value);
}

// q1t

uint64_t q1t_least_bytes(uint64_t rows) {
  return 4 * (rows + 1);
}
void q1t_write_empty(uint64_t rows, uint8_t* out) {
  std::fill_n(out, q1t_least_bytes(rows), uint8_t{0});
}

StatusOr<std::vector<uint8_t>> q1t_gather(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols,
                                          std::span<const uint32_t> row_map) {
  std::vector<uint8_t> out(q1t_least_bytes(row_map.size()));
  std::vector<Entry> entries;
  for (uint64_t r = 0; r < row_map.size(); ++r) {
    const uint64_t source = row_map[r];
    entries.clear();
    for (uint64_t e = load_u32(overlay.data() + 4 * source); e < load_u32(overlay.data() + 4 * source + 4); ++e) {
      const Q1TEntry entry = q1t_entry(overlay.data(), rows, e);
      entries.push_back({source, entry.column, e, entry.value});
    }
    sort_entries(entries);
    for (const Entry& entry : entries) {
      const uint16_t column = static_cast<uint16_t>(entry.column);
      append(out, &column, 2);
      append(out, &entry.value, 2);
    }
    const uint64_t total = (out.size() - q1t_least_bytes(row_map.size())) / kQ1TEntryBytes;
    if (total > UINT32_MAX)
      return too_many("q1t");
    store_u32(out.data() + 4 * (r + 1), static_cast<uint32_t>(total));
  }
  return out;
}

Status q1t_check(std::span<const uint8_t> overlay, uint64_t rows, uint64_t cols) {
  return check_q1t_overlay(overlay, rows, cols);
}

void q1t_apply(const uint8_t* overlay, uint64_t rows, uint64_t, uint64_t row, float* out) {
  apply_q1t_overlay(overlay, rows, row, out);
}

} // namespace

constinit const OverlayForm kQ1SOverlay = {
    .least_bytes = q1s_least_bytes,
    .write_empty = q1s_write_empty,
    .gather = q1s_gather,
    .check = q1s_check,
    .apply = q1s_apply,
};

constinit const OverlayForm kQ1TOverlay = {
    .least_bytes = q1t_least_bytes,
    .write_empty = q1t_write_empty,
    .gather = q1t_gather,
    .check = q1t_check,
    .apply = q1t_apply,
};

} // namespace cortiq::formats
