#pragma once

// The table of model types of checkpoint folders: what distinguishes a family.

#include <cstdint>
#include <string>
#include <string_view>

namespace cortiq::convert {

/// Which layers look at a window only.
enum class HfWindow : uint8_t {
  kNever,     ///< a window in the configuration means nothing
  kAlways,    ///< sliding_window, where there is one, holds for every layer
  kSwitched,  ///< only with use_sliding_window, for the layers from max_window_layers on
  kAlternate, ///< for all layers but every sliding_window_pattern-th
};

enum class HfMixer : uint8_t {
  kAttention,
  kLatent,     ///< MLA
  kShortConv,  ///< convolutions where layer_types says so
  kGatedDelta, ///< GDN likewise
};

/// In whose words the configuration speaks of experts.
enum class HfExperts : uint8_t {
  kNone,
  kMixtral,  ///< num_local_experts
  kQwen,     ///< num_experts, decoder_sparse_step, mlp_only_layers
  kDeepSeek, ///< n_routed_experts, first_k_dense_replace
  kLfm,      ///< num_experts, num_dense_layers
};

struct HfArch {
  std::string_view name; ///< model_type, which is arch.arch_name of CMF too
  HfMixer mixer = HfMixer::kAttention;
  HfExperts experts = HfExperts::kNone;
  HfWindow window = HfWindow::kNever;
  uint64_t window_pattern = 0;           ///< default
  bool head_norms = false;               ///< has self_attn.q_norm and k_norm
  bool offset_norms = false;             ///< norm weights without the 1 (norm_style gemma)
  bool sandwich = false;                 ///< norms behind the blocks too
  bool scaled_embedding = false;         ///< by the root of the width
  bool tied = false;                     ///< tie_word_embeddings where it is absent
  bool norm_after_rope = false;          ///< qk_norm_after_rope
  bool gated_queries = false;            ///< q_proj holds a gate beside the queries
  std::string_view act = "silu";         ///< where hidden_act is absent
  std::string_view eps = "rms_norm_eps"; ///< the field
  uint64_t head_dim = 0;                 ///< where it is absent; 0: hidden_size / num_attention_heads
  double rotary = 1;                     ///< partial_rotary_factor where it is absent
};

/// The row of `name`; null where there is none.
const HfArch* find_hf_arch(std::string_view name);

/// The names in the table, for messages.
std::string hf_arch_names();

} // namespace cortiq::convert
