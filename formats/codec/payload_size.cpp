#include "formats/codec/payload_size.h"

#include <string>

#include "formats/checked_math.h"

namespace cortiq::formats {
namespace {

std::string shape_words(const Codec& codec, uint64_t rows, uint64_t cols) {
  return "a " + std::string(codec.name) + " tensor of " + std::to_string(rows) + " x " + std::to_string(cols);
}

} // namespace

StatusOr<uint64_t> size_or_overflow(const Codec& codec, uint64_t rows, uint64_t cols, std::optional<uint64_t> size) {
  if (!size)
    return invalid(shape_words(codec, rows, cols) + " is larger than 64 bits can count");
  return *size;
}

Status check_block_shape(const Codec& codec, uint64_t rows, uint64_t cols) {
  if (rows == 0 || cols == 0)
    return invalid(shape_words(codec, rows, cols) + " has no weights");
  if (cols % codec.block != 0)
    return invalid(shape_words(codec, rows, cols) + " is not permitted: a row must be whole blocks of " +
                   std::to_string(codec.block));
  return {};
}

StatusOr<uint64_t> contiguous_payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  if (codec.block > 1)
    CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  return size_or_overflow(codec, rows, cols, checked_mul(checked_mul(rows, cols / codec.block), codec.block_bytes));
}

Status expect_size(const Codec& codec, uint64_t size, uint64_t expected, uint64_t rows, uint64_t cols) {
  if (size == expected)
    return {};
  return invalid("has a byte length of " + std::to_string(size) + ", but " + shape_words(codec, rows, cols) +
                 " takes " + std::to_string(expected));
}

Status expect_at_least(const Codec& codec, uint64_t size, uint64_t least, uint64_t rows, uint64_t cols) {
  if (size >= least)
    return {};
  return invalid("has a byte length of " + std::to_string(size) + ", fewer than the " + std::to_string(least) +
                 " that " + shape_words(codec, rows, cols) + " needs at least");
}

Status check_payload(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, bool strict) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t size, codec.payload_bytes(codec, rows, cols));
  if (!codec.variable_size)
    CORTIQ_RETURN_IF_ERROR(expect_size(codec, payload.size(), size, rows, cols));
  return codec.validate == nullptr ? Status() : codec.validate(codec, payload, rows, cols, strict);
}

} // namespace cortiq::formats
