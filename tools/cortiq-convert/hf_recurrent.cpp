// Blocks of checkpoints that keep a state: gated delta networks and short convolutions.

#include "tools/cortiq-convert/hf_tensors.h"

namespace cortiq::convert {

Status add_hf_delta(HfTensors& tensors, uint64_t layer) {
  const DeltaSizes& d = tensors.sizes.delta;
  const uint64_t hidden = tensors.sizes.hidden;
  const auto name = [&](std::string_view suffix) { return layer_name(layer, "linear_attn." + std::string(suffix)); };
  struct Input {
    const char* stem;
    const char* fused;
    uint64_t rows, fused_rows;
    IndexOrder order; ///< within the fused tensor
    bool precise;
  };
  const Input inputs[] = {
      {"in_proj_qkv.weight", "in_proj_qkvz.weight", d.channels(), grouped_rows(d), grouped_qkv(d), false},
      {"in_proj_z.weight", "in_proj_qkvz.weight", d.values(), grouped_rows(d), grouped_z(d), false},
      {"in_proj_a.weight", "in_proj_ba.weight", d.value_heads, 2 * d.value_heads, grouped_a(d), true},
      {"in_proj_b.weight", "in_proj_ba.weight", d.value_heads, 2 * d.value_heads, grouped_b(d), true},
  };
  for (const Input& input : inputs) {
    const bool fused = tensors.has(name(input.fused));
    const Slice slice = fused ? Slice{.file_rows = input.fused_rows, .order = input.order} : Slice{};
    CORTIQ_ASSIGN_OR_RETURN(
        SourceTensor* const added,
        tensors.add_slice(name(fused ? input.fused : input.stem), name(input.stem), {input.rows, hidden}, slice));
    added->precise = input.precise;
  }
  CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const conv, tensors.keep(name("conv1d.weight"), {d.channels(), 1, d.taps}));
  conv->precise = true;
  CORTIQ_RETURN_IF_ERROR(tensors.keep(name("A_log"), {d.value_heads}).status());
  CORTIQ_RETURN_IF_ERROR(tensors.keep(name("dt_bias"), {d.value_heads}).status());
  CORTIQ_RETURN_IF_ERROR(tensors.keep(name("norm.weight"), {d.value_size}).status());
  return tensors.keep(name("out_proj.weight"), {hidden, d.values()}).status();
}

Status add_hf_short_conv(HfTensors& tensors, uint64_t layer) {
  const uint64_t hidden = tensors.sizes.hidden;
  const auto name = [&](std::string_view suffix) { return layer_name(layer, "short_conv." + std::string(suffix)); };
  CORTIQ_RETURN_IF_ERROR(tensors.keep(name("in_proj.weight"), {3 * hidden, hidden}).status());
  CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const conv,
                          tensors.keep(name("conv.weight"), {hidden, 1, tensors.sizes.conv_taps}));
  conv->precise = true;
  return tensors.keep(name("out_proj.weight"), {hidden, hidden}).status();
}

} // namespace cortiq::convert
