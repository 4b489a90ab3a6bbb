#pragma once

// The tensor types of GGUF files (specification section 2), decodable by us or not.

#include <cstdint>
#include <span>
#include <string_view>

namespace cortiq::formats {

struct GgufTensorType {
  uint32_t id;
  std::string_view name;
  uint32_t block;       ///< weights a block
  uint32_t block_bytes; ///< bytes a block
  uint32_t trailer;     ///< bytes behind the blocks of a tensor
};

/// What an id can mean, upstream's reading or the older one first; empty for removed and unknown ids. Writers disagree
/// on 42 and 143 only, so that most ids have one row.
std::span<const GgufTensorType> gguf_tensor_types(uint32_t id);

/// True for ids that once had a meaning and must not be used any more.
bool is_removed_gguf_type(uint32_t id);

} // namespace cortiq::formats
