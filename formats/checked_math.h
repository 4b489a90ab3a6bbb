#pragma once

// Arithmetic on numbers that came from a file: every result is either right or absent.

#include <cstdint>
#include <optional>

namespace cortiq::formats {

/// a + b, or nothing when it does not fit 64 bits.
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    return std::nullopt;
  return sum;
}

/// a * b, or nothing when it does not fit 64 bits.
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

/// The forms that take an earlier result, so that a formula can be written in one line and checked once at its end.
inline std::optional<uint64_t> checked_add(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  return a && b ? checked_add(*a, *b) : std::nullopt;
}
inline std::optional<uint64_t> checked_mul(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  return a && b ? checked_mul(*a, *b) : std::nullopt;
}

/// The least multiple of `alignment` (not 0) that is not below `value`, or nothing when it does not fit 64 bits.
inline std::optional<uint64_t> checked_round_up(uint64_t value, uint64_t alignment) {
  const uint64_t excess = value % alignment;
  return excess == 0 ? value : checked_add(value, alignment - excess);
}

/// Whether [offset, offset + length) lies inside a range of `size` bytes.
constexpr bool range_fits(uint64_t offset, uint64_t length, uint64_t size) {
  return offset <= size && length <= size - offset;
}

/// a / b rounded up; cannot overflow. `b` must not be 0.
constexpr uint64_t ceil_div(uint64_t a, uint64_t b) {
  return a / b + (a % b != 0);
}

} // namespace cortiq::formats
