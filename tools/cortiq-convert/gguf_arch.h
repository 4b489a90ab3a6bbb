#pragma once

// The table of GGUF architectures: what distinguishes a family, in the words of the specification (GGUF models 1.7, 2.3
// to 2.5). A new family is a row here, and a block of its own only where it has tensors that no other has.

#include <cstdint>
#include <string>
#include <string_view>

namespace cortiq::convert {

/// Which norms a layer has.
enum class GgufNorms : uint8_t {
  kPlain,    ///< attn_norm, ffn_norm
  kRenamed,  ///< attn_norm, post_attention_norm in front of the feed-forward block
  kSandwich, ///< attn_norm, post_attention_norm, ffn_norm, post_ffw_norm
};

/// What mixes tokens.
enum class GgufMixer : uint8_t {
  kAttention,
  kLatent,     ///< attn_q_a, attn_kv_a_mqa, …: MLA
  kShortConv,  ///< convolutions where head_count_kv is 0
  kGatedDelta, ///< GDN in all but every so many layers
};

/// How the rotated rows of queries and keys lie.
enum class GgufPairing : uint8_t { kHalves, kNeighbours };

/// Which layers look at a window.
enum class GgufWindows : uint8_t {
  kNever,   ///< a window key means nothing
  kAlways,  ///< with a default width and pattern
  kIfKeyed, ///< where attention.sliding_window is there and not 0
};

/// Choice among experts where the keys do not say.
enum class GgufExperts : uint8_t {
  kNone,
  kNormalized,
  kPlainWeights,
  kKeyed, ///< expert_weights_norm says; layers before leading_dense_block_count have none
};

struct GgufArch {
  std::string_view name;              ///< general.architecture
  std::string_view cmf_name;          ///< arch.arch_name
  std::string_view experts_name = {}; ///< the same for files with experts; empty = cmf_name
  GgufMixer mixer = GgufMixer::kAttention;
  GgufPairing pairing = GgufPairing::kHalves;
  GgufNorms norms = GgufNorms::kPlain;
  bool head_norms = false; ///< has attn_q_norm and attn_k_norm
  bool fused_gate = false; ///< ffn_up holds the gate's rows before its own
  GgufExperts experts = GgufExperts::kNone;
  bool needs_experts = false; ///< refused without
  bool sigmoid = false;       ///< router's function where the key is absent
  GgufWindows windows = GgufWindows::kNever;
  uint32_t window_pattern = 0;             ///< default
  double window_base = 0;                  ///< of window layers' rotation where the key is absent; 0 = as the others
  std::string_view act = "silu";           ///< hidden_act
  bool scaled_embedding = false;           ///< by the root of the width
  bool norm_after_rope = false;            ///< qk_norm_after_rope
  uint32_t odd_scale_layers = 0;           ///< at this depth attention is scaled by H / nh instead of the key length
  double attention_cap = 0, final_cap = 0; ///< soft caps where the keys are absent
  bool divides_logits = false;             ///< logit_scale divides; else it is not known
  std::string_view final_norm = "output_norm.weight";
};

/// The row of `name`; null where there is none.
const GgufArch* find_gguf_arch(std::string_view name);

/// Why an architecture that this program knows cannot be a CMF file; empty where it does not know it.
std::string_view no_cmf_form(std::string_view name);

/// The names in the table, for messages.
std::string gguf_arch_names();

} // namespace cortiq::convert
