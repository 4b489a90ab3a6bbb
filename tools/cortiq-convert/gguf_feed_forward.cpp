// Feed-forward blocks of GGUF: dense ones, and experts with their router.

#include "tools/cortiq-convert/gguf_tensors.h"

namespace cortiq::convert {
namespace {

std::string mlp_name(uint64_t layer, std::string_view suffix) {
  return layer_name(layer, "mlp." + std::string(suffix));
}

/// One of the three matrices.
struct Part {
  const char* stem; ///< "ffn_" + stem in the file
  const char* canonical;
  bool down;

  std::vector<uint64_t> shape(uint64_t width, uint64_t hidden) const {
    return down ? std::vector<uint64_t>{hidden, width} : std::vector<uint64_t>{width, hidden};
  }
};

constexpr Part kParts[] = {
    {"gate", "gate_proj.weight", false},
    {"up", "up_proj.weight", false},
    {"down", "down_proj.weight", true},
};

Status add_dense(GgufTensors& tensors, uint64_t layer) {
  const GgufSizes& sizes = tensors.sizes;
  const uint64_t width = sizes.feed_forward[layer];
  const bool fused = tensors.arch.fused_gate && !tensors.has(gguf_block(layer, "ffn_gate.weight"));
  for (const Part& part : kParts) {
    const bool gate = part.stem == kParts[0].stem;
    const std::string stem = fused && gate ? "up" : part.stem;
    Slice slice;
    if (fused && !part.down)
      slice = {.first = gate ? 0 : width, .file_rows = 2 * width};
    CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const added,
                            tensors.add_slice(gguf_block(layer, "ffn_" + stem + ".weight"),
                                              mlp_name(layer, part.canonical), part.shape(width, sizes.hidden), slice));
    if (part.down)
      scale_residual(*added, sizes.residual_scale);
  }
  return {};
}

/// Where one matrix of an expert lies.
struct ExpertPlace {
  std::string name;
  std::vector<uint64_t> file_shape;
  uint64_t first_row = 0;
};

ExpertPlace expert_place(const GgufTensors& tensors, uint64_t layer, uint64_t expert, const Part& part) {
  const ExpertSizes& e = tensors.sizes.experts;
  const uint64_t hidden = tensors.sizes.hidden;
  const std::vector<uint64_t> shape = part.shape(e.width, hidden);
  const std::string single =
      gguf_block(layer, "ffn_" + std::string(part.stem) + "." + std::to_string(expert) + ".weight");
  if (tensors.has(single)) // the oldest files of Mixtral
    return {single, shape};
  const std::string fused = gguf_block(layer, "ffn_gate_up_exps.weight");
  if (!part.down && tensors.has(fused)) {
    const uint64_t behind = part.stem == kParts[0].stem ? 0 : e.width;
    return {fused, {e.count, 2 * e.width, hidden}, expert * 2 * e.width + behind};
  }
  return {gguf_block(layer, "ffn_" + std::string(part.stem) + "_exps.weight"),
          {e.count, shape[0], shape[1]},
          expert * shape[0]};
}

Status add_router(GgufTensors& tensors, uint64_t layer) {
  const ExpertSizes& e = tensors.sizes.experts;
  const StatusOr<SourceTensor*> router = tensors.add(gguf_block(layer, "ffn_gate_inp.weight"),
                                                     mlp_name(layer, "gate.weight"), {e.count, tensors.sizes.hidden});
  if (!router.ok())
    return invalid(router.status().message() + " for " + std::to_string(e.count) + " experts (key " +
                   std::string(tensors.arch.name) + ".expert_count)");
  (*router)->precise = true;
  for (const char* stem : {"exp_probs_b.bias", "exp_probs_b"}) {
    if (!tensors.has(gguf_block(layer, stem)))
      continue;
    return tensors.add(gguf_block(layer, stem), mlp_name(layer, "expert_bias"), {e.count}).status();
  }
  return {};
}

Status add_shared_expert(GgufTensors& tensors, uint64_t layer) {
  const GgufSizes& sizes = tensors.sizes;
  if (sizes.experts.shared_width == 0)
    return {};
  for (const Part& part : kParts) {
    CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const added,
                            tensors.add(gguf_block(layer, "ffn_" + std::string(part.stem) + "_shexp.weight"),
                                        mlp_name(layer, "shared_expert." + std::string(part.canonical)),
                                        part.shape(sizes.experts.shared_width, sizes.hidden)));
    if (part.down)
      scale_residual(*added, sizes.residual_scale);
  }
  const std::string gate = gguf_block(layer, "ffn_gate_inp_shexp.weight");
  if (!tensors.has(gate))
    return {};
  CORTIQ_ASSIGN_OR_RETURN(
      SourceTensor* const added,
      tensors.add_shaped(gate, mlp_name(layer, "shared_expert_gate.weight"), {1, sizes.hidden}, {sizes.hidden}));
  added->precise = true;
  return {};
}

Status add_experts(GgufTensors& tensors, uint64_t layer) {
  CORTIQ_RETURN_IF_ERROR(add_router(tensors, layer));
  const GgufSizes& sizes = tensors.sizes;
  for (uint64_t expert = 0; expert < sizes.experts.count; ++expert)
    for (const Part& part : kParts) {
      const ExpertPlace place = expert_place(tensors, layer, expert, part);
      const std::string name = mlp_name(layer, "experts." + std::to_string(expert) + "." + part.canonical);
      CORTIQ_ASSIGN_OR_RETURN(
          SourceTensor* const added,
          tensors.add_shaped(place.name, name, part.shape(sizes.experts.width, sizes.hidden), place.file_shape));
      added->first_row = place.first_row;
      if (part.down)
        scale_residual(*added, sizes.residual_scale);
    }
  return add_shared_expert(tensors, layer);
}

} // namespace

Status add_gguf_feed_forward(GgufTensors& tensors, uint64_t layer) {
  return tensors.sizes.has_experts(layer) ? add_experts(tensors, layer) : add_dense(tensors, layer);
}

} // namespace cortiq::convert
