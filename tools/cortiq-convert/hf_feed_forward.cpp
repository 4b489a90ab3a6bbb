// Feed-forward blocks of checkpoints: dense ones, and experts with their router.

#include "tools/cortiq-convert/hf_tensors.h"

namespace cortiq::convert {
namespace {

std::string mlp_name(uint64_t layer, std::string_view suffix) {
  return layer_name(layer, "mlp." + std::string(suffix));
}

/// The three matrices of one block, of which some families fuse gate and up.
Status add_matrices(HfTensors& tensors, const std::string& stem, uint64_t width) {
  const uint64_t hidden = tensors.sizes.hidden;
  const std::string fused = stem + "gate_up_proj.weight";
  for (const bool up : {false, true}) {
    const std::string name = stem + (up ? "up_proj.weight" : "gate_proj.weight");
    const Slice slice = tensors.has(fused) ? Slice{.first = up ? width : 0, .file_rows = 2 * width} : Slice{};
    CORTIQ_RETURN_IF_ERROR(tensors.add_slice(tensors.has(fused) ? fused : name, name, {width, hidden}, slice).status());
  }
  CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const down, tensors.keep(stem + "down_proj.weight", {hidden, width}));
  scale_residual(*down, tensors.sizes.residual_scale);
  return {};
}

/// Experts that are stacked in one tensor: [experts, gate then up, hidden] and [experts, hidden, width].
Status add_stacked(HfTensors& tensors, uint64_t layer, uint64_t expert) {
  const HfSizes& s = tensors.sizes;
  const uint64_t width = s.experts.width;
  const std::string stem = mlp_name(layer, "experts." + std::to_string(expert) + ".");
  const std::string both = mlp_name(layer, "experts.gate_up_proj");
  for (const bool up : {false, true})
    CORTIQ_RETURN_IF_ERROR(tensors
                               .add_shaped(both, stem + (up ? "up_proj.weight" : "gate_proj.weight"), {width, s.hidden},
                                           {s.experts.count, 2 * width, s.hidden},
                                           expert * 2 * width + (up ? width : 0))
                               .status());
  return tensors
      .add_shaped(mlp_name(layer, "experts.down_proj"), stem + "down_proj.weight", {s.hidden, width},
                  {s.experts.count, s.hidden, width}, expert * s.hidden)
      .status();
}

Status add_experts(HfTensors& tensors, uint64_t layer) {
  const HfSizes& s = tensors.sizes;
  CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const router,
                          tensors.keep(mlp_name(layer, "gate.weight"), {s.experts.count, s.hidden}));
  router->precise = true;
  if (tensors.has(mlp_name(layer, "expert_bias")))
    CORTIQ_RETURN_IF_ERROR(tensors.keep(mlp_name(layer, "expert_bias"), {s.experts.count}).status());
  const bool stacked = tensors.has(mlp_name(layer, "experts.gate_up_proj"));
  for (uint64_t expert = 0; expert < s.experts.count; ++expert)
    CORTIQ_RETURN_IF_ERROR(
        stacked ? add_stacked(tensors, layer, expert)
                : add_matrices(tensors, mlp_name(layer, "experts." + std::to_string(expert) + "."), s.experts.width));
  if (s.experts.shared_width == 0)
    return {};
  CORTIQ_RETURN_IF_ERROR(add_matrices(tensors, mlp_name(layer, "shared_expert."), s.experts.shared_width));
  if (!tensors.has(mlp_name(layer, "shared_expert_gate.weight")))
    return {};
  CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const gate,
                          tensors.keep(mlp_name(layer, "shared_expert_gate.weight"), {1, s.hidden}));
  gate->precise = true;
  return {};
}

} // namespace

Status add_hf_feed_forward(HfTensors& tensors, uint64_t layer) {
  return tensors.sizes.sparse[layer] ? add_experts(tensors, layer)
                                     : add_matrices(tensors, mlp_name(layer, ""), tensors.sizes.feed_forward);
}

} // namespace cortiq::convert
