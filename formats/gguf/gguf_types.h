#pragma once

// The tensor types of GGUF files (specification section 2), decodable by us or not.

#include <cstdint>
#include <string_view>

namespace cortiq::formats {

struct GgufTensorType {
  uint32_t id;
  std::string_view name;
  uint32_t block;       ///< weights a block
  uint32_t block_bytes; ///< bytes a block
  uint32_t trailer;     ///< bytes behind the blocks of a tensor
};

/// The type's row; null for removed and unknown ids.
const GgufTensorType* find_gguf_tensor_type(uint32_t id);

/// True for ids that once had a meaning and must not be used any more.
bool is_removed_gguf_type(uint32_t id);

} // namespace cortiq::formats
