// blr: a sum of one or two low-rank products of sign matrices. A header (magic, paths, rank, shape), then for each path
// f16 h (a row), g (a column), l (a rank), and the bits of U (rows x rank) and V (rank x columns), lowest first, set =
// +1. w(i, j) = sum over paths of h(i) * sum over k of (l(k) U(i, k)) * (g(j) V(k, j)), k ascending, in f32.

#include <algorithm>
#include <string>

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kHeaderBytes = 16;
constexpr uint64_t kLeastRank = 8;

std::optional<uint64_t> path_bytes(uint64_t rank, uint64_t rows, uint64_t cols) {
  const std::optional<uint64_t> scales = checked_mul(checked_add(checked_add(rows, cols), rank), 2);
  return checked_add(scales, checked_add(checked_mul(rows, rank / 8), checked_mul(rank, cols / 8)));
}

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  if (rows < kLeastRank)
    return invalid("has " + std::to_string(rows) + " rows, but blr takes at least " + std::to_string(kLeastRank));
  // The payload is far smaller than the matrix, whose weights must still be countable.
  if (!checked_mul(checked_mul(rows, cols), sizeof(float)))
    return size_or_overflow(codec, rows, cols, std::nullopt);
  return size_or_overflow(codec, rows, cols, checked_add(kHeaderBytes, path_bytes(kLeastRank, rows, cols)));
}

Status validate(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, bool strict) {
  CORTIQ_RETURN_IF_ERROR(expect_at_least(codec, payload.size(), kHeaderBytes, rows, cols));
  const uint8_t* head = payload.data();
  const uint64_t paths = head[2];
  if (head[0] != 0x4C || head[1] != 1 || (paths != 1 && paths != 2) || head[3] != 0)
    return invalid("has a low-rank header that is not version 1 with one or two paths");
  const uint64_t rank = load_u32(head + 4);
  const uint64_t out = load_u32(head + 8);
  const uint64_t in = load_u32(head + 12);
  if (out != rows || in != cols)
    return invalid("has a low-rank header for [" + std::to_string(out) + ", " + std::to_string(in) +
                   "], but the shape [" + std::to_string(rows) + ", " + std::to_string(cols) + "]");
  if (rank < kLeastRank || rank % 8 != 0 || rank > std::min(out, in))
    return invalid("states the low-rank rank " + std::to_string(rank) + ", expected a multiple of 8 from 8 to " +
                   std::to_string(std::min(out, in)));
  const std::optional<uint64_t> total = checked_add(kHeaderBytes, checked_mul(path_bytes(rank, rows, cols), paths));
  return total ? expect_size(codec, payload.size(), *total, rows, cols)
               : size_or_overflow(codec, rows, cols, total).status();
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t rank = load_u32(payload + 4);
  const uint8_t* h = payload + kHeaderBytes;
  std::fill_n(out, cols, 0.0f);
  for (int p = 0; p < payload[2]; ++p, h += *path_bytes(rank, rows, cols)) {
    const uint8_t* g = h + 2 * rows;
    const uint8_t* l = g + 2 * cols;
    const uint8_t* u = l + 2 * rank + row * (rank / 8);
    const uint8_t* v = l + 2 * rank + rows * (rank / 8);
    const float scale = half_to_float(load_u16(h + 2 * row));
    for (uint64_t j = 0; j < cols; ++j) {
      const float column = half_to_float(load_u16(g + 2 * j));
      float sum = 0.0f;
      for (uint64_t k = 0; k < rank; ++k) {
        const float level = half_to_float(load_u16(l + 2 * k));
        const bool positive = v[k * (cols / 8) + j / 8] >> (j % 8) & 1;
        sum += (u[k / 8] >> (k % 8) & 1 ? level : -level) * (positive ? column : -column);
      }
      out[j] += scale * sum;
    }
  }
}

} // namespace

constinit const Codec kBLRCodec =
    of_variable_size(cmf_planes(CodecId::kBLR, "blr", 19, 8, DotForm::kFloat, payload_bytes, decode_row), validate);

} // namespace cortiq::formats
