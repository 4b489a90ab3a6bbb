#include "formats/codec/grouped.h"

#include <algorithm>
#include <string>
#include <vector>

#include "formats/checked_math.h"

namespace cortiq::formats {

void decode_transposed(const Codec& codec, std::span<const uint8_t> payload, const GroupedShape& shape, uint64_t expert,
                       std::span<float> out) {
  // A few rows at a time, so that what is written stays in whole lines.
  constexpr uint64_t kRows = 16;
  const auto [experts, n, k] = shape;
  std::vector<float> rows(std::min(kRows, n) * k);
  for (uint64_t first = 0; first < n; first += kRows) {
    const uint64_t count = std::min(kRows, n - first);
    for (uint64_t r = 0; r < count; ++r)
      codec.decode_row(payload.data(), experts * n, k, expert * n + first + r, &rows[r * k]);
    for (uint64_t c = 0; c < k; ++c)
      for (uint64_t r = 0; r < count; ++r)
        out[c * n + first + r] = rows[r * k + c];
  }
}

Status decode_grouped(const Codec& codec, std::span<const uint8_t> payload, const GroupedShape& shape,
                      std::span<float> out) {
  const auto [experts, n, k] = shape;
  const auto rows = checked_mul(experts, n);
  const auto weights = rows ? checked_mul(*rows, k) : rows;
  if (!weights || *weights == 0 || codec.decode_row == nullptr)
    return invalid("a stack of " + std::to_string(experts) + " matrices of " + std::to_string(n) + "x" +
                   std::to_string(k) + " in " + std::string(codec.name) + " cannot be decoded");
  CORTIQ_RETURN_IF_ERROR(check_payload(codec, payload, *rows, k, /*strict=*/false));
  if (out.size() != *weights)
    return invalid("a stack of " + std::to_string(*weights) + " weights does not fill " + std::to_string(out.size()) +
                   " floats");
  for (uint64_t e = 0; e < experts; ++e)
    decode_transposed(codec, payload, shape, e, out.subspan(e * n * k, n * k));
  return {};
}

} // namespace cortiq::formats
