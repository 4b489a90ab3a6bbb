#pragma once

// The table of model types of checkpoint folders that can be converted.

#include <string_view>

namespace cortiq::convert {

/// Which layers look at a window only.
enum class HfWindow {
  kNever,    ///< a window in the configuration means nothing
  kAlways,   ///< sliding_window, where there is one, holds for every layer
  kSwitched, ///< only with use_sliding_window, for the layers from max_window_layers on
};

struct HfArch {
  std::string_view name;     ///< model_type
  std::string_view cmf_name; ///< arch.arch_name
  bool head_norms;           ///< has self_attn.q_norm and k_norm
  HfWindow window;
};

/// The row of `name`; null where there is none.
const HfArch* find_hf_arch(std::string_view name);

/// The names in the table, for messages.
std::string_view hf_arch_names();

} // namespace cortiq::convert
