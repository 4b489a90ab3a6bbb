#include "formats/cmf/cmf_arch.h"

#include <algorithm>
#include <array>

#include "formats/cmf/cmf_arch_checks.h"
#include "formats/cmf/json_fields.h"

namespace cortiq::formats {
namespace {

struct LayerWord {
  std::string_view word;
  CmfLayerType type;
};

constexpr std::array kLayerWords = {
    LayerWord{"FullAttention", CmfLayerType::kFullAttention},
    LayerWord{"SlidingAttention", CmfLayerType::kSlidingAttention},
    LayerWord{"LinearAttention", CmfLayerType::kLinearAttention},
    LayerWord{"ShortConv", CmfLayerType::kShortConv},
    LayerWord{"Kda", CmfLayerType::kKda},
    LayerWord{"BoundedAttention", CmfLayerType::kBoundedAttention},
};

constexpr std::array kFamilyBlocks = {"anchor_core", "block_diffusion", "deepseek_v41",
                                      "g3n",         "prism_hadamard",  "qwen4_exp"};

void read_layer_types(JsonFields& fields, std::vector<CmfLayerType>& out) {
  std::vector<std::string> words;
  fields.required("layer_types", words);
  for (const std::string& word : words) {
    const auto* row =
        std::find_if(kLayerWords.begin(), kLayerWords.end(), [&](const LayerWord& w) { return w.word == word; });
    if (row == kLayerWords.end())
      return fields.fail(invalid("arch.layer_types[" + std::to_string(out.size()) + "] is " + quote(word) +
                                 ", which is no layer type"));
    out.push_back(row->type);
  }
}

void read_norm_style(JsonFields& fields, CmfNormStyle& out) {
  std::string word = "qwen";
  fields.with_default("norm_style", word);
  if (word != "qwen" && word != "gemma")
    fields.fail(invalid("arch.norm_style is " + quote(word) + ", expected \"qwen\" or \"gemma\""));
  out = word == "gemma" ? CmfNormStyle::kGemma : CmfNormStyle::kQwen;
}

/// Reads the object `key`, if present, with `read(JsonFields&, T&)`.
template <class T, class Read>
void read_block(JsonFields& fields, const char* key, std::optional<T>& out, Read read) {
  const Json* value = fields.present(key);
  if (value == nullptr)
    return;
  JsonFields inner(*value, fields.name(key));
  read(inner, out.emplace());
  fields.fail(inner.status());
}

void read_yarn(JsonFields& f, CmfYarn& out) {
  f.required("factor", out.factor);
  f.required("original_max_position_embeddings", out.original_max_position_embeddings);
  f.with_default("beta_fast", out.beta_fast);
  f.with_default("beta_slow", out.beta_slow);
  f.with_default("attention_factor", out.attention_factor);
  f.optional("mscale_all_dim", out.mscale_all_dim);
}

void read_mla(JsonFields& f, CmfMla& out) {
  f.required("kv_lora_rank", out.kv_lora_rank);
  f.required("qk_rope_head_dim", out.qk_rope_head_dim);
  f.required("qk_nope_head_dim", out.qk_nope_head_dim);
  f.required("v_head_dim", out.v_head_dim);
  f.optional("q_lora_rank", out.q_lora_rank);
  f.with_default("nope", out.nope);
}

void read_mtp(JsonFields& f, CmfMtp& out) {
  std::optional<std::vector<uint32_t>> sizes;
  f.required("num_layers", out.num_layers);
  f.optional("ffn_intermediate_sizes", sizes);
  f.with_default("share_lm_head", out.share_lm_head);
  f.with_default("share_embed", out.share_embed);
  out.ffn_intermediate_sizes = sizes.value_or(std::vector<uint32_t>());
}

void read_moe(JsonFields& f, CmfMoe& out) {
  f.required("num_experts", out.num_experts);
  f.required("top_k", out.top_k);
  f.required("moe_intermediate_size", out.moe_intermediate_size);
  f.with_default("norm_topk_prob", out.norm_topk_prob);
  f.optional("shared_expert_intermediate_size", out.shared_expert_intermediate_size);
  f.with_default("router_sigmoid", out.router_sigmoid);
  f.optional("routed_scaling_factor", out.routed_scaling_factor);
  f.with_default("router_resonance", out.router_resonance);
}

void read_linear_core(JsonFields& f, CmfLinearCore& out) {
  f.required("kind", out.kind);
  f.required("num_heads", out.num_heads);
  f.optional("nphase", out.nphase);
  f.required("value_head_dim", out.value_head_dim);
  f.optional("phase_delta_layers", out.phase_delta_layers);
}

} // namespace

bool CmfArch::has_family_block(std::string_view name) const {
  return std::find(family_blocks.begin(), family_blocks.end(), name) != family_blocks.end();
}

std::string_view cmf_layer_type_name(CmfLayerType type) {
  return kLayerWords[static_cast<size_t>(type)].word;
}

StatusOr<CmfArch> parse_cmf_arch(const Json& json) {
  CmfArch arch;
  JsonFields f(json, "arch");
  f.required("arch_name", arch.arch_name);
  f.required("hidden_size", arch.hidden_size);
  f.required("intermediate_size", arch.intermediate_size);
  f.required("num_layers", arch.num_layers);
  f.required("num_attention_heads", arch.num_attention_heads);
  f.required("num_kv_heads", arch.num_kv_heads);
  f.required("head_dim", arch.head_dim);
  f.required("vocab_size", arch.vocab_size);
  read_layer_types(f, arch.layer_types);
  f.required("rms_norm_eps", arch.rms_norm_eps);
  f.required("max_position_embeddings", arch.max_position_embeddings);
  read_norm_style(f, arch.norm_style);
  f.with_default("rope_theta", arch.rope_theta);
  f.with_default("tie_word_embeddings", arch.tie_word_embeddings);
  f.with_default("partial_rotary_factor", arch.partial_rotary_factor);
  read_block(f, "yarn", arch.yarn, read_yarn);
  f.optional("attention_heads_per_layer", arch.attention_heads_per_layer);
  f.optional("kv_heads_per_layer", arch.kv_heads_per_layer);
  f.optional("v_head_dim", arch.v_head_dim);
  f.with_default("hidden_act", arch.hidden_act);
  f.with_default("embed_multiplier", arch.embed_multiplier);
  f.optional("query_pre_attn_scalar", arch.query_pre_attn_scalar);
  f.optional("sliding_window", arch.sliding_window);
  f.optional("sliding_window_pattern", arch.sliding_window_pattern);
  f.optional("rope_local_base_freq", arch.rope_local_base_freq);
  f.optional("local_partial_rotary_factor", arch.local_partial_rotary_factor);
  f.optional("global_head_dim", arch.global_head_dim);
  f.optional("num_global_kv_heads", arch.num_global_kv_heads);
  f.optional("global_partial_rotary_factor", arch.global_partial_rotary_factor);
  f.optional("final_logit_softcapping", arch.final_logit_softcapping);
  f.optional("attn_logit_softcapping", arch.attn_logit_softcapping);
  f.with_default("attn_v_norm", arch.attn_v_norm);
  f.with_default("qk_norm_after_rope", arch.qk_norm_after_rope);
  read_block(f, "mla", arch.mla, read_mla);
  f.optional("no_rope_layers", arch.no_rope_layers);
  f.with_default("attention_sink", arch.attention_sink);
  f.optional("activation_situ_beta", arch.activation_situ_beta);
  f.optional("activation_situ_linear_beta", arch.activation_situ_linear_beta);
  read_block(f, "mtp", arch.mtp, read_mtp);
  read_block(f, "moe", arch.moe, read_moe);
  read_block(f, "linear_core", arch.linear_core, read_linear_core);
  f.optional("head_clusters", arch.head_clusters);
  f.optional("linear_conv_kernel_dim", arch.linear_conv_kernel_dim);
  f.optional("linear_num_key_heads", arch.linear_num_key_heads);
  f.optional("linear_num_value_heads", arch.linear_num_value_heads);
  f.optional("linear_key_head_dim", arch.linear_key_head_dim);
  f.optional("linear_value_head_dim", arch.linear_value_head_dim);
  f.optional("rope_freq_factors", arch.rope_freq_factors);
  f.optional("logit_multiplier", arch.logit_multiplier);
  f.with_default("num_loops", arch.num_loops);
  f.with_default("loop_final_norm", arch.loop_final_norm);
  f.optional("kda_gate_lower_bound", arch.kda_gate_lower_bound);
  for (const char* block : kFamilyBlocks)
    if (f.present(block) != nullptr)
      arch.family_blocks.emplace_back(block);
  CORTIQ_RETURN_IF_ERROR(f.status());
  CORTIQ_RETURN_IF_ERROR(check_linear_core(arch));
  CORTIQ_RETURN_IF_ERROR(check_anchor_core(arch, json));
  CORTIQ_RETURN_IF_ERROR(check_prism(arch, json));
  return arch;
}

} // namespace cortiq::formats
