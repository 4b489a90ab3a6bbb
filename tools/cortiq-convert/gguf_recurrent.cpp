// Blocks of GGUF that keep a state: gated delta networks (Qwen3-Next, Qwen3.5) and short convolutions (LFM2).

#include <cmath>

#include "tools/cortiq-convert/gguf_tensors.h"

namespace cortiq::convert {
namespace {

/// A_log of the value that is in the file, -exp(A_log).
float log_of_negated(float a) {
  return std::log(-a);
}

/// Adds the tensors of one gated delta block.
class DeltaBlock {
public:
  DeltaBlock(GgufTensors& tensors, uint64_t layer)
      : tensors_(tensors), layer_(layer), d_(tensors.sizes.delta), hidden_(tensors.sizes.hidden) {}

  Status add() {
    CORTIQ_RETURN_IF_ERROR(tensors_.has(file("ssm_in.weight")) ? add_grouped_inputs() : add_inputs());
    CORTIQ_RETURN_IF_ERROR(tensors_.has(file("ssm_ba.weight")) ? add_grouped_gates() : add_gates());
    CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const conv,
                            tensors_.add_shaped(file("ssm_conv1d.weight"), canonical("conv1d.weight"),
                                                {d_.channels(), 1, d_.taps}, {d_.channels(), d_.taps}));
    conv->order = after_keys();
    conv->precise = true;
    CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const decay,
                            tensors_.add(file("ssm_a"), canonical("A_log"), {d_.value_heads}));
    decay->order = heads(1);
    decay->value = log_of_negated;
    CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const step,
                            tensors_.add(file("ssm_dt.bias"), canonical("dt_bias"), {d_.value_heads}));
    step->order = heads(1);
    CORTIQ_RETURN_IF_ERROR(tensors_.add(file("ssm_norm.weight"), canonical("norm.weight"), {d_.value_size}).status());
    CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const out,
                            tensors_.add(file("ssm_out.weight"), canonical("out_proj.weight"), {hidden_, d_.values()}));
    if (tiled())
      out->columns = {d_.value_size, heads(1)};
    return {};
  }

private:
  std::string file(std::string_view stem) const { return gguf_block(layer_, stem); }
  std::string canonical(std::string_view stem) const { return layer_name(layer_, "linear_attn." + std::string(stem)); }

  /// Qwen3.5's files have the value heads by turn, Qwen3-Next's by key head, as CMF.
  bool tiled() const { return tensors_.arch.name != "qwen3next" && d_.turns() > 1; }
  IndexOrder heads(uint64_t rows) const {
    return tiled() ? from_tiled_heads(d_.key_heads, d_.turns(), rows) : IndexOrder();
  }
  IndexOrder after_keys() const { return tiled() ? after_rows(2 * d_.keys(), heads(d_.value_size)) : IndexOrder(); }

  Status add_inputs() {
    CORTIQ_RETURN_IF_ERROR(tensors_
                               .add_slice(file("attn_qkv.weight"), canonical("in_proj_qkv.weight"),
                                          {d_.channels(), hidden_}, {.order = after_keys()})
                               .status());
    return tensors_
        .add_slice(file("attn_gate.weight"), canonical("in_proj_z.weight"), {d_.values(), hidden_},
                   {.order = heads(d_.value_size)})
        .status();
  }

  /// Old files of Qwen3-Next have them fused as its checkpoints do.
  Status add_grouped_inputs() {
    const uint64_t all = grouped_rows(d_);
    CORTIQ_RETURN_IF_ERROR(tensors_
                               .add_slice(file("ssm_in.weight"), canonical("in_proj_qkv.weight"),
                                          {d_.channels(), hidden_}, {.file_rows = all, .order = grouped_qkv(d_)})
                               .status());
    return tensors_
        .add_slice(file("ssm_in.weight"), canonical("in_proj_z.weight"), {d_.values(), hidden_},
                   {.file_rows = all, .order = grouped_z(d_)})
        .status();
  }

  Status add_gates() {
    CORTIQ_RETURN_IF_ERROR(add_gate("ssm_alpha.weight", "in_proj_a.weight", {.order = heads(1)}));
    return add_gate("ssm_beta.weight", "in_proj_b.weight", {.order = heads(1)});
  }

  Status add_grouped_gates() {
    const uint64_t all = 2 * d_.value_heads;
    CORTIQ_RETURN_IF_ERROR(add_gate("ssm_ba.weight", "in_proj_a.weight", {.file_rows = all, .order = grouped_a(d_)}));
    return add_gate("ssm_ba.weight", "in_proj_b.weight", {.file_rows = all, .order = grouped_b(d_)});
  }

  Status add_gate(const char* stem, const char* name, const Slice& slice) {
    CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const gate,
                            tensors_.add_slice(file(stem), canonical(name), {d_.value_heads, hidden_}, slice));
    gate->precise = true;
    return {};
  }

  GgufTensors& tensors_;
  uint64_t layer_;
  const DeltaSizes& d_;
  uint64_t hidden_;
};

} // namespace

Status add_gguf_delta(GgufTensors& tensors, uint64_t layer) {
  return DeltaBlock(tensors, layer).add();
}

Status add_gguf_short_conv(GgufTensors& tensors, uint64_t layer) {
  const uint64_t hidden = tensors.sizes.hidden, taps = tensors.sizes.conv_taps;
  const auto file = [&](std::string_view stem) { return gguf_block(layer, "shortconv." + std::string(stem)); };
  const auto canonical = [&](std::string_view stem) { return layer_name(layer, "short_conv." + std::string(stem)); };
  CORTIQ_RETURN_IF_ERROR(
      tensors.add(file("in_proj.weight"), canonical("in_proj.weight"), {3 * hidden, hidden}).status());
  CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const conv, tensors.add_shaped(file("conv.weight"), canonical("conv.weight"),
                                                                       {hidden, 1, taps}, {hidden, taps}));
  conv->precise = true;
  return tensors.add(file("out_proj.weight"), canonical("out_proj.weight"), {hidden, hidden}).status();
}

} // namespace cortiq::convert
