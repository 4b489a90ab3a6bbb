#pragma once

// The `arch` object of a CMF header (specification 1.5) as a plain struct: names as in the file, defaults as specified.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/json.h"
#include "formats/status.h"

namespace cortiq::formats {

enum class CmfLayerType : uint8_t {
  kFullAttention,
  kSlidingAttention,
  kLinearAttention,
  kShortConv,
  kKda,
  kBoundedAttention,
};

enum class CmfNormStyle : uint8_t { kQwen, kGemma };

struct CmfYarn {
  float factor = 0;
  uint32_t original_max_position_embeddings = 0;
  float beta_fast = 32;
  float beta_slow = 1;
  float attention_factor = 1;
  std::optional<float> mscale_all_dim;
};

struct CmfMla {
  uint32_t kv_lora_rank = 0;
  uint32_t qk_rope_head_dim = 0;
  uint32_t qk_nope_head_dim = 0;
  uint32_t v_head_dim = 0;
  std::optional<uint32_t> q_lora_rank;
  bool nope = false;
};

struct CmfMtp {
  uint32_t num_layers = 0;
  std::vector<uint32_t> ffn_intermediate_sizes;
  bool share_lm_head = true;
  bool share_embed = true;
};

struct CmfMoe {
  uint32_t num_experts = 0;
  uint32_t top_k = 0;
  uint32_t moe_intermediate_size = 0;
  bool norm_topk_prob = false;
  std::optional<uint32_t> shared_expert_intermediate_size;
  bool router_sigmoid = false;
  std::optional<float> routed_scaling_factor; ///< absent = 1
  bool router_resonance = false;
};

struct CmfLinearCore {
  std::string kind;
  uint32_t num_heads = 0;
  std::optional<uint32_t> nphase;
  uint32_t value_head_dim = 0;
  std::optional<std::vector<uint32_t>> phase_delta_layers;
};

/// Every field of a text decoder. Integers are at most 2^31; nothing else about their values was checked, so that
/// whoever builds a model from them still checks sizes, divisibility and zero.
struct CmfArch {
  std::string arch_name;
  uint32_t hidden_size = 0;
  uint32_t intermediate_size = 0;
  uint32_t num_layers = 0;
  uint32_t num_attention_heads = 0;
  uint32_t num_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t vocab_size = 0;
  std::vector<CmfLayerType> layer_types; ///< may be shorter than num_layers: use layer_type()
  double rms_norm_eps = 0;
  uint32_t max_position_embeddings = 0;

  CmfNormStyle norm_style = CmfNormStyle::kQwen;
  double rope_theta = 10000;
  bool tie_word_embeddings = false;
  float partial_rotary_factor = 1;
  std::optional<CmfYarn> yarn;
  std::optional<std::vector<uint32_t>> attention_heads_per_layer;
  std::optional<std::vector<uint32_t>> kv_heads_per_layer;
  std::optional<uint32_t> v_head_dim; ///< absent = head_dim
  std::string hidden_act = "silu";
  float embed_multiplier = 1;
  std::optional<double> query_pre_attn_scalar;
  std::optional<uint32_t> sliding_window;
  std::optional<uint32_t> sliding_window_pattern;
  std::optional<double> rope_local_base_freq;
  std::optional<float> local_partial_rotary_factor;
  std::optional<uint32_t> global_head_dim;
  std::optional<uint32_t> num_global_kv_heads;
  std::optional<float> global_partial_rotary_factor; ///< absent = 1
  std::optional<double> final_logit_softcapping;
  std::optional<double> attn_logit_softcapping;
  bool attn_v_norm = false;
  bool qk_norm_after_rope = false;
  std::optional<CmfMla> mla;
  std::optional<std::vector<bool>> no_rope_layers;
  bool attention_sink = false;
  std::optional<double> activation_situ_beta;        ///< absent = 1
  std::optional<double> activation_situ_linear_beta; ///< absent = 0
  std::optional<CmfMtp> mtp;
  std::optional<CmfMoe> moe;
  std::optional<CmfLinearCore> linear_core;
  std::optional<uint32_t> head_clusters;
  std::optional<uint32_t> linear_conv_kernel_dim;
  std::optional<uint32_t> linear_num_key_heads;
  std::optional<uint32_t> linear_num_value_heads;
  std::optional<uint32_t> linear_key_head_dim;
  std::optional<uint32_t> linear_value_head_dim;
  std::optional<std::vector<double>> rope_freq_factors;
  std::optional<float> logit_multiplier; ///< absent = 1
  uint32_t num_loops = 1;
  bool loop_final_norm = false;
  std::optional<double> kda_gate_lower_bound;

  /// Blocks that name a family with its own layer stack or arithmetic and that this struct does not model: those
  /// present among anchor_core, block_diffusion, deepseek_v41, g3n, prism_hadamard, qwen4_exp. Their content stays in
  /// the header.
  std::vector<std::string> family_blocks;

  /// The kind of layer i; an index past the end of layer_types is full attention.
  CmfLayerType layer_type(size_t i) const {
    return i < layer_types.size() ? layer_types[i] : CmfLayerType::kFullAttention;
  }
  bool has_family_block(std::string_view name) const;
};

/// The file's word for a layer type.
std::string_view cmf_layer_type_name(CmfLayerType type);

/// Reads `arch` and holds it against the cross-checks of 1.5; messages name the field.
StatusOr<CmfArch> parse_cmf_arch(const Json& arch);

} // namespace cortiq::formats
