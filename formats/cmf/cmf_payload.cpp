#include "formats/cmf/cmf_payload.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "formats/checked_math.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

uint16_t load16(const uint8_t* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

uint32_t load32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// Two dimensions, and rows of whole groups of `group`. Both dimensions are below 2^32, so products with small factors
/// cannot overflow 64 bits where they are used below.
Status expect_matrix(const Tensor& tensor, uint64_t group) {
  if (tensor.shape.size() == 2 && tensor.cols() % group == 0)
    return {};
  return invalid("has the shape " + shape_text(tensor.shape) + ", but " + std::string(tensor.type_name) +
                 " needs two dimensions with columns in multiples of " + std::to_string(group));
}

Status size_overflows(const Tensor& tensor) {
  return invalid("has the shape " + shape_text(tensor.shape) + ", whose payload size overflows");
}

Status expect_payload_size(const Tensor& tensor, std::optional<uint64_t> expected) {
  return expected ? expect_payload_size(tensor, *expected) : size_overflows(tensor);
}

/// Refuses a payload that is too short for the part of `needed` bytes that every tensor of its shape has.
Status expect_at_least(const Tensor& tensor, std::optional<uint64_t> needed) {
  if (!needed)
    return size_overflows(tensor);
  if (tensor.data.size() >= *needed)
    return {};
  return invalid("has " + std::to_string(tensor.data.size()) + " bytes, fewer than the " + std::to_string(*needed) +
                 " that " + std::string(tensor.type_name) + " " + shape_text(tensor.shape) + " needs at least");
}

/// Packed bytes of row `row`, given its bit width.
StatusOr<uint64_t> vbit_row_bytes(const Tensor& tensor, uint64_t row) {
  const uint8_t bits = tensor.data[row];
  if (bits < 3 || bits > 8 || bits == 7)
    return invalid("has the row bit width " + std::to_string(bits) + " in row " + std::to_string(row) +
                   ", expected 3, 4, 5, 6 or 8");
  return ceil_div(tensor.cols() * bits, 8);
}

/// R x (C / 32) tiles of `tile` bytes.
std::optional<uint64_t> tiles(const Tensor& tensor, uint64_t tile) {
  return checked_mul(checked_mul(tensor.rows(), tensor.cols() / 32), tile);
}

} // namespace

Status expect_payload_size(const Tensor& tensor, uint64_t expected) {
  if (tensor.data.size() == expected)
    return {};
  return invalid("has a byte length of " + std::to_string(tensor.data.size()) + ", but " +
                 std::string(tensor.type_name) + " " + shape_text(tensor.shape) + " takes " + std::to_string(expected));
}

Status check_vbit(const Tensor& tensor) {
  CORTIQ_RETURN_IF_ERROR(expect_matrix(tensor, 32));
  const std::optional<uint64_t> head = checked_add(checked_add(uint64_t{0}, tensor.rows()), tiles(tensor, 2));
  CORTIQ_RETURN_IF_ERROR(expect_at_least(tensor, head));
  // Rows and columns are below 2^32 and the rows lie inside the file, so the sum stays below 2^64.
  uint64_t total = *head;
  for (uint64_t r = 0; r < tensor.rows(); ++r) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, vbit_row_bytes(tensor, r));
    total += bytes;
  }
  return expect_payload_size(tensor, total);
}

Status check_vbit_ro(const Tensor& tensor) {
  CORTIQ_RETURN_IF_ERROR(expect_matrix(tensor, 32));
  const uint64_t rows = tensor.rows();
  const std::optional<uint64_t> table = checked_add(checked_add(uint64_t{0}, rows), tiles(tensor, 2));
  const std::optional<uint64_t> packed = checked_add(table, checked_mul(rows + 1, 4));
  CORTIQ_RETURN_IF_ERROR(expect_at_least(tensor, packed));
  uint64_t at = 0;
  for (uint64_t r = 0; r <= rows; ++r) {
    const uint32_t stored = load32(tensor.data.data() + *table + 4 * r);
    if (stored != at)
      return invalid("states the row offset " + std::to_string(stored) + " for row " + std::to_string(r) +
                     ", expected " + std::to_string(at));
    if (r == rows)
      break;
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, vbit_row_bytes(tensor, r));
    at += bytes;
  }
  return expect_payload_size(tensor, checked_add(packed, at));
}

Status check_q1(const Tensor& tensor) {
  CORTIQ_RETURN_IF_ERROR(expect_matrix(tensor, 32));
  return expect_payload_size(tensor, tiles(tensor, 6));
}

Status check_q1s(const Tensor& tensor) {
  CORTIQ_RETURN_IF_ERROR(expect_matrix(tensor, 32));
  const std::optional<uint64_t> base = tiles(tensor, 6);
  const std::optional<uint64_t> head = checked_add(base, 4);
  CORTIQ_RETURN_IF_ERROR(expect_at_least(tensor, head));
  const uint64_t count = load32(tensor.data.data() + *base);
  if (tensor.data.size() - *head != 6 * count)
    return invalid("states an outlier count of " + std::to_string(count) + ", but its payload has " +
                   std::to_string(tensor.data.size() - *head) + " bytes for them instead of " +
                   std::to_string(6 * count));
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t index = load32(tensor.data.data() + *head + 6 * i);
    if (index >= tensor.rows() * tensor.cols())
      return invalid("has an outlier at index " + std::to_string(index) + ", outside its " + shape_text(tensor.shape) +
                     " weights");
  }
  return {};
}

Status check_q1t(const Tensor& tensor) {
  CORTIQ_RETURN_IF_ERROR(expect_matrix(tensor, 32));
  const uint64_t rows = tensor.rows();
  if (tensor.cols() > 65536)
    return invalid("has " + std::to_string(tensor.cols()) + " columns, but q1t takes at most 65536");
  const std::optional<uint64_t> table = tiles(tensor, 9);
  const std::optional<uint64_t> head = checked_add(table, checked_mul(rows + 1, 4));
  CORTIQ_RETURN_IF_ERROR(expect_at_least(tensor, head));
  const uint8_t* pointers = tensor.data.data() + *table;
  const uint8_t* entries = tensor.data.data() + *head;
  CORTIQ_RETURN_IF_ERROR(expect_payload_size(tensor, checked_add(head, uint64_t{4} * load32(pointers + 4 * rows))));
  if (load32(pointers) != 0)
    return invalid("does not start its table of outliers at 0");
  for (uint64_t r = 0; r < rows; ++r)
    if (load32(pointers + 4 * r) > load32(pointers + 4 * (r + 1)))
      return invalid("has a table of outliers that decreases at row " + std::to_string(r));
  for (uint64_t i = 0; i < load32(pointers + 4 * rows); ++i)
    if (load16(entries + 4 * i) >= tensor.cols())
      return invalid("has an outlier in column " + std::to_string(load16(entries + 4 * i)) + " of " +
                     std::to_string(tensor.cols()));
  return {};
}

Status check_q2tp(const Tensor& tensor) {
  CORTIQ_RETURN_IF_ERROR(expect_matrix(tensor, 32));
  const uint64_t row_bytes = 4 + ceil_div(5 * (tensor.cols() / 32), 8);
  return expect_payload_size(tensor, checked_add(tiles(tensor, 8), checked_mul(tensor.rows(), row_bytes)));
}

Status check_blr(const Tensor& tensor) {
  CORTIQ_RETURN_IF_ERROR(expect_matrix(tensor, 8));
  CORTIQ_RETURN_IF_ERROR(expect_at_least(tensor, uint64_t{16}));
  const uint8_t* head = tensor.data.data();
  const uint64_t paths = head[2];
  if (head[0] != 0x4C || head[1] != 1 || (paths != 1 && paths != 2) || head[3] != 0)
    return invalid("has a low-rank header that is not version 1 with one or two paths");
  const uint64_t rank = load32(head + 4);
  const uint64_t out = load32(head + 8);
  const uint64_t in = load32(head + 12);
  if (out != tensor.rows() || in != tensor.cols())
    return invalid("has a low-rank header for [" + std::to_string(out) + ", " + std::to_string(in) +
                   "], but the shape " + shape_text(tensor.shape));
  if (rank < 8 || rank % 8 != 0 || rank > std::min(out, in))
    return invalid("states the low-rank rank " + std::to_string(rank) + ", expected a multiple of 8 from 8 to " +
                   std::to_string(std::min(out, in)));
  const std::optional<uint64_t> path =
      checked_add(2 * (out + in + rank), checked_add(checked_mul(out, rank / 8), checked_mul(rank, in / 8)));
  return expect_payload_size(tensor, checked_add(uint64_t{16}, checked_mul(paths, path)));
}

Status check_q1g(const Tensor& tensor) {
  CORTIQ_RETURN_IF_ERROR(expect_matrix(tensor, 128));
  // 16 bytes of signs and one f16 scale for 128 weights.
  return expect_payload_size(tensor, checked_mul(checked_mul(tensor.rows(), tensor.cols() / 128), 18));
}

Status check_mxfp4(const Tensor& tensor) {
  CORTIQ_RETURN_IF_ERROR(expect_matrix(tensor, 32));
  return expect_payload_size(tensor, tiles(tensor, 17));
}

} // namespace cortiq::formats
