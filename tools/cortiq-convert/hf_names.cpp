#include "tools/cortiq-convert/hf_names.h"

namespace cortiq::convert {
namespace {

struct Rename {
  std::string_view from, to;
};

constexpr Rename kPrefixes[] = {
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."},
    {"language_model.", "model."},
};

constexpr std::string_view kTowers[] = {
    "audio_tower.",
    "model.audio_tower.",
    "model.multi_modal_projector.",
    "model.vision_tower.",
    "model.visual.",
    "multi_modal_projector.",
    "vision_tower.",
    "visual.",
};

/// Applied in this order, each where it is found. Dots keep parts of other words from matching.
constexpr Rename kParts[] = {
    {".block_sparse_moe.", ".mlp."},
    {".feed_forward.", ".mlp."},
    {".mlp.router.gate.", ".mlp.gate."},
    {".mlp.shared_experts.", ".mlp.shared_expert."},
    {".mlp.shared_mlp.", ".mlp.shared_expert."},
    {".mlp.gate.e_score_correction_bias", ".mlp.expert_bias"},
    {".mlp.experts.e_score_correction_bias", ".mlp.expert_bias"},
    {".w1.", ".gate_proj."},
    {".w3.", ".up_proj."},
    {".w2.", ".down_proj."},
    {".query_layernorm.", ".q_norm."},
    {".key_layernorm.", ".k_norm."},
    {".operator_norm.", ".input_layernorm."},
    {".ffn_norm.", ".post_attention_layernorm."},
    {".self_attn.out_proj.", ".self_attn.o_proj."},
    {".self_attn.q_layernorm.", ".self_attn.q_norm."},
    {".self_attn.k_layernorm.", ".self_attn.k_norm."},
    {".conv.conv.", ".short_conv.conv."},
    {".conv.in_proj.", ".short_conv.in_proj."},
    {".conv.out_proj.", ".short_conv.out_proj."},
    {"model.embedding_norm.", "model.norm."},
};

} // namespace

std::string canonical_name(std::string_view name) {
  for (const std::string_view tower : kTowers)
    if (name.starts_with(tower))
      return {};
  if (name.ends_with(".rotary_emb.inv_freq")) // old files store the table
    return {};
  std::string out(name);
  for (const Rename& rename : kPrefixes)
    if (out.starts_with(rename.from)) {
      out.replace(0, rename.from.size(), rename.to);
      break;
    }
  for (const Rename& rename : kParts)
    if (const size_t at = out.find(rename.from); at != std::string::npos)
      out.replace(at, rename.from.size(), rename.to);
  return out;
}

} // namespace cortiq::convert
