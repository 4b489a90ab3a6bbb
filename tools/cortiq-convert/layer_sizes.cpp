#include "tools/cortiq-convert/layer_sizes.h"

#include <nlohmann/json.hpp>

namespace cortiq::convert {

using formats::Json;

namespace {

std::string_view kind_name(LayerKind kind) {
  switch (kind) {
  case LayerKind::kAttention:
    return "FullAttention";
  case LayerKind::kWindow:
    return "SlidingAttention";
  case LayerKind::kShortConv:
    return "ShortConv";
  case LayerKind::kGatedDelta:
    return "LinearAttention";
  }
}

} // namespace

Json layer_type_names(const std::vector<LayerKind>& kinds) {
  Json names = Json::array();
  for (const LayerKind kind : kinds)
    names.push_back(kind_name(kind));
  return names;
}

Json latent_fields(const LatentSizes& sizes) {
  Json mla = {{"kv_lora_rank", sizes.rank},
              {"qk_rope_head_dim", sizes.rope},
              {"qk_nope_head_dim", sizes.nope},
              {"v_head_dim", sizes.value}};
  if (sizes.query_rank > 0)
    mla["q_lora_rank"] = sizes.query_rank;
  return mla;
}

void add_delta_fields(const DeltaSizes& sizes, Json& arch) {
  arch["linear_core"] = {
      {"kind", "gated_delta_net"}, {"num_heads", sizes.value_heads}, {"value_head_dim", sizes.value_size}};
  arch["linear_conv_kernel_dim"] = sizes.taps;
  arch["linear_num_key_heads"] = sizes.key_heads;
  arch["linear_num_value_heads"] = sizes.value_heads;
  arch["linear_key_head_dim"] = sizes.key_size;
  arch["linear_value_head_dim"] = sizes.value_size;
}

Json expert_fields(const ExpertSizes& sizes, const RouterRules& rules) {
  Json moe = {{"num_experts", sizes.count},
              {"top_k", sizes.used},
              {"moe_intermediate_size", sizes.width},
              {"norm_topk_prob", rules.normalized}};
  if (sizes.shared_width > 0)
    moe["shared_expert_intermediate_size"] = sizes.shared_width;
  if (rules.sigmoid)
    moe["router_sigmoid"] = true;
  if (rules.scale != 1)
    moe["routed_scaling_factor"] = rules.scale;
  return moe;
}

} // namespace cortiq::convert
