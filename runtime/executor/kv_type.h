#pragma once

// What a cache holds of a key or value.

#include <cstdint>
#include <optional>
#include <string_view>

namespace cortiq::runtime {

enum class KvType {
  kF32,
  kF16,
  kQ8, ///< whole numbers to 127 in groups of kKvGroup, each group with an f32 factor: 1.125 bytes a value
};

inline constexpr uint64_t kKvGroup = 32;

inline const char* kv_type_name(KvType type) {
  return type == KvType::kF32 ? "f32" : type == KvType::kF16 ? "f16" : "q8";
}

inline std::optional<KvType> parse_kv_type(std::string_view name) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kQ8})
    if (name == kv_type_name(type))
      return type;
  return std::nullopt;
}

} // namespace cortiq::runtime
