#pragma once

// Metadata values of GGUF files.

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace cortiq::formats {

/// Types of metadata values, numbered as in the file.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// "u32", "string", …
std::string_view gguf_type_name(GgufType type);

/// Bytes of a value of a fixed-size type; 0 for strings, arrays and unknown types.
uint64_t gguf_type_bytes(GgufType type);

/// A scalar value: unsigned and signed integers, floats, booleans, strings (views into the file).
using GgufScalar = std::variant<uint64_t, int64_t, double, bool, std::string_view>;

/// An array inside the file. Its bytes were walked once at open, so reading an element cannot fail.
struct GgufArray {
  GgufType element = GgufType::kU8;
  uint64_t size = 0;
  std::span<const uint8_t> bytes; ///< the elements back to back; strings with their lengths

  /// Calls visit(GgufScalar) for each element in order, until it returns false.
  template <class Visit>
  void for_each(Visit visit) const;
};

/// One metadata entry.
struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::kU8;
  std::variant<GgufScalar, GgufArray> value;
};

/// The value of `type` at the start of `bytes`, which holds it whole; advances `bytes` past it.
GgufScalar take_gguf_scalar(GgufType type, std::span<const uint8_t>& bytes);

template <class Visit>
void GgufArray::for_each(Visit visit) const {
  std::span<const uint8_t> rest = bytes;
  for (uint64_t i = 0; i < size; ++i)
    if (!visit(take_gguf_scalar(element, rest)))
      return;
}

} // namespace cortiq::formats
