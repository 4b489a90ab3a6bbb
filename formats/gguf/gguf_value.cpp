#include "formats/gguf/gguf_value.h"

#include <array>
#include <cstring>

namespace cortiq::formats {
namespace {

struct TypeRow {
  std::string_view name;
  uint64_t bytes;
};

/// Indexed by GgufType.
constexpr std::array kTypes = {
    TypeRow{"u8", 1},  TypeRow{"i8", 1},  TypeRow{"u16", 2},  TypeRow{"i16", 2},    TypeRow{"u32", 4},
    TypeRow{"i32", 4}, TypeRow{"f32", 4}, TypeRow{"bool", 1}, TypeRow{"string", 0}, TypeRow{"array", 0},
    TypeRow{"u64", 8}, TypeRow{"i64", 8}, TypeRow{"f64", 8},
};

template <class T>
T take(std::span<const uint8_t>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return value;
}

} // namespace

std::string_view gguf_type_name(GgufType type) {
  const auto index = static_cast<size_t>(type);
  return index < kTypes.size() ? kTypes[index].name : "unknown";
}

uint64_t gguf_type_bytes(GgufType type) {
  const auto index = static_cast<size_t>(type);
  return index < kTypes.size() ? kTypes[index].bytes : 0;
}

GgufScalar take_gguf_scalar(GgufType type, std::span<const uint8_t>& bytes) {
  switch (type) {
  case GgufType::kU8:
    return uint64_t{take<uint8_t>(bytes)};
  case GgufType::kI8:
    return int64_t{take<int8_t>(bytes)};
  case GgufType::kU16:
    return uint64_t{take<uint16_t>(bytes)};
  case GgufType::kI16:
    return int64_t{take<int16_t>(bytes)};
  case GgufType::kU32:
    return uint64_t{take<uint32_t>(bytes)};
  case GgufType::kI32:
    return int64_t{take<int32_t>(bytes)};
  case GgufType::kF32:
    return double{take<float>(bytes)};
  case GgufType::kBool:
    return take<uint8_t>(bytes) != 0;
  case GgufType::kU64:
    return take<uint64_t>(bytes);
  case GgufType::kI64:
    return take<int64_t>(bytes);
  case GgufType::kF64:
    return take<double>(bytes);
  case GgufType::kString:
  case GgufType::kArray: // never an element: arrays do not nest
    break;
  }
  const auto length = take<uint64_t>(bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), length);
  bytes = bytes.subspan(length);
  return text;
}

} // namespace cortiq::formats
