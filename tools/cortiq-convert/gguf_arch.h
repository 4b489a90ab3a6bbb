#pragma once

// The table of GGUF architectures that can be converted.

#include <string_view>

namespace cortiq::convert {

struct GgufArch {
  std::string_view name;     ///< general.architecture
  std::string_view cmf_name; ///< arch.arch_name
  bool neighbours;           ///< query and key rows are stored for rotation of neighbours (NORM)
  bool head_norms;           ///< has attn_q_norm and attn_k_norm
};

/// The row of `name`; null where there is none.
const GgufArch* find_gguf_arch(std::string_view name);

/// The names in the table, for messages: "llama, qwen2 and qwen3".
std::string_view gguf_arch_names();

} // namespace cortiq::convert
