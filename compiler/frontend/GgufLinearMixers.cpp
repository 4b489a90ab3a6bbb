// Mixers with recurrent state in GGUF files (GGUF models 1.6 and 2.5): which layers have one, their sizes and tensors.

#include "compiler/frontend/GgufReader.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::Tensor;

namespace {

// What no head count, width or number of taps reaches.
constexpr int64_t kMaxHeads = 1 << 14;

} // namespace

Status GgufReader::readMixers(const DecoderTraits& traits) {
  if (traits.recurrent == RecurrentMixer::kShortConv) {
    CORTIQ_ASSIGN_OR_RETURN(taps_, headSize("shortconv.l_cache"));
    return {}; // readHeads() knows the layers: they have no key/value heads
  }
  if (traits.recurrent != RecurrentMixer::kGatedDelta)
    return {};
  const std::string list = key("attention.recurrent_layers");
  std::vector<bool> recurrent(model_.layers.size());
  if (file_.has(list)) {
    CORTIQ_ASSIGN_OR_RETURN(recurrent, file_.get_per_layer_bool(list, model_.layers.size()));
  } else {
    CORTIQ_ASSIGN_OR_RETURN(const int64_t interval, size("full_attention_interval", 4));
    for (size_t i = 0; i < recurrent.size(); ++i)
      recurrent[i] = (static_cast<int64_t>(i) + 1) % interval != 0;
  }
  for (size_t i = 0; i < recurrent.size(); ++i)
    if (recurrent[i])
      model_.layers[i].mixer = Mixer::kGatedDelta;
  LinearAttention& sizes = model_.linear;
  CORTIQ_ASSIGN_OR_RETURN(taps_, headSize("ssm.conv_kernel"));
  CORTIQ_ASSIGN_OR_RETURN(sizes.keyDim, headSize("ssm.state_size"));
  CORTIQ_ASSIGN_OR_RETURN(sizes.keyHeads, headSize("ssm.group_count"));
  CORTIQ_ASSIGN_OR_RETURN(sizes.valueHeads, headSize("ssm.time_step_rank"));
  CORTIQ_ASSIGN_OR_RETURN(const int64_t inner, size("ssm.inner_size"));
  sizes.valueDim = sizes.keyDim;
  sizes.tiledHeads = traits.tiledHeads;
  sizes.decayRates = true;
  if (inner != sizes.valueHeads * sizes.valueDim)
    return invalid("key " + key("ssm.inner_size") + " is " + std::to_string(inner) + ", but " +
                   key("ssm.time_step_rank") + " " + std::to_string(sizes.valueHeads) + " heads of " +
                   key("ssm.state_size") + " " + std::to_string(sizes.valueDim) + " make " +
                   std::to_string(sizes.valueHeads * sizes.valueDim));
  if (sizes.valueHeads % sizes.keyHeads != 0)
    return invalid("key " + key("ssm.time_step_rank") + " is " + std::to_string(sizes.valueHeads) +
                   ", not a multiple of " + key("ssm.group_count") + ", which is " + std::to_string(sizes.keyHeads));
  return {};
}

StatusOr<int64_t> GgufReader::headSize(std::string_view suffix) const {
  CORTIQ_ASSIGN_OR_RETURN(const int64_t value, size(suffix));
  if (value > kMaxHeads)
    return invalid("key " + key(suffix) + " is " + std::to_string(value) + ", which no model can have");
  if (value < 2 && (suffix == "ssm.conv_kernel" || suffix == "shortconv.l_cache"))
    return invalid("key " + key(suffix) + " is 1: a convolution over time has at least 2 taps");
  return value;
}

Status GgufReader::readShortConv(int64_t index) {
  auto canonical = [&](const char* word) { return layerName(index, std::string("short_conv.") + word + ".weight"); };
  CORTIQ_RETURN_IF_ERROR(
      matrix(blockName(index, "shortconv.in_proj.weight"), canonical("in_proj"), 3 * model_.hidden, model_.hidden));
  CORTIQ_RETURN_IF_ERROR(matrix(blockName(index, "shortconv.conv.weight"), canonical("conv"), model_.hidden, taps_));
  return matrix(blockName(index, "shortconv.out_proj.weight"), canonical("out_proj"), model_.hidden, model_.hidden);
}

Status GgufReader::readGatedDelta(int64_t index) {
  const LinearAttention& sizes = model_.linear;
  const int64_t values = sizes.valueHeads * sizes.valueDim, all = 2 * sizes.keyHeads * sizes.keyDim + values;
  auto canonical = [&](const char* word) { return layerName(index, std::string("linear_attn.") + word); };
  if (file_.find(blockName(index, "ssm_in.weight")))
    return unsupported("tensor " + formats::quote(blockName(index, "ssm_in.weight")) +
                       " holds the projections grouped by key head, as old files do; convert the model again");
  CORTIQ_RETURN_IF_ERROR(
      matrix(blockName(index, "attn_qkv.weight"), canonical("in_proj_qkv.weight"), all, model_.hidden));
  CORTIQ_RETURN_IF_ERROR(
      matrix(blockName(index, "attn_gate.weight"), canonical("in_proj_z.weight"), values, model_.hidden));
  if (const Tensor* both = file_.find(blockName(index, "ssm_ba.weight"))) {
    // For each key head, the b rows of its value heads, then their a rows.
    const int64_t shared = sizes.valueHeads / sizes.keyHeads;
    for (const auto& [word, first] : {std::pair("in_proj_b.weight", int64_t{0}), std::pair("in_proj_a.weight", shared)})
      CORTIQ_RETURN_IF_ERROR(addWeight(model_, canonical(word),
                                       {both, {sizes.valueHeads, model_.hidden}, first, 0, shared, 2 * shared},
                                       2 * sizes.valueHeads));
  } else {
    CORTIQ_RETURN_IF_ERROR(
        matrix(blockName(index, "ssm_beta.weight"), canonical("in_proj_b.weight"), sizes.valueHeads, model_.hidden));
    CORTIQ_RETURN_IF_ERROR(
        matrix(blockName(index, "ssm_alpha.weight"), canonical("in_proj_a.weight"), sizes.valueHeads, model_.hidden));
  }
  CORTIQ_RETURN_IF_ERROR(matrix(blockName(index, "ssm_conv1d.weight"), canonical("conv1d.weight"), all, taps_));
  CORTIQ_RETURN_IF_ERROR(vector(blockName(index, "ssm_a"), canonical("A_log"), sizes.valueHeads));
  CORTIQ_RETURN_IF_ERROR(vector(blockName(index, "ssm_dt.bias"), canonical("dt_bias"), sizes.valueHeads));
  CORTIQ_RETURN_IF_ERROR(vector(blockName(index, "ssm_norm.weight"), canonical("norm.weight"), sizes.valueDim));
  return matrix(blockName(index, "ssm_out.weight"), canonical("out_proj.weight"), model_.hidden, values);
}

} // namespace cortiq::compiler
