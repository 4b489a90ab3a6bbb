// Experts of GGUF files (GGUF models 1.5 and 2.2): counts and routing from the keys, weights as slices of stacks.

#include <cmath>

#include "compiler/frontend/GgufReader.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::Tensor;

// The counts are held against each other and against the stacks first: a damaged file is told from one that asks too
// much.
Status GgufReader::readExpertCounts(const DecoderTraits& traits) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t experts, file_.get_u64_or(key("expert_count"), 0));
  if (experts == 0)
    return {};
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint64_t> used,
                          file_.get_per_layer_u64(key("expert_used_count"), model_.layers.size()));
  for (uint64_t count : used)
    if (count == 0 || count > experts)
      return invalid("key " + key("expert_used_count") + " is " + std::to_string(count) + ", not within 1 and " +
                     key("expert_count") + ", which is " + std::to_string(experts));
  for (size_t i = 0; i < model_.layers.size(); ++i)
    for (const char* suffix : {"ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"})
      if (const Tensor* stack = file_.find(blockName(i, suffix)))
        if (stack->shape.size() != 3 || stack->shape[0] != experts)
          return invalid("tensor " + formats::quote(stack->name) + " is a stack of " +
                         std::to_string(stack->shape.empty() ? 0 : stack->shape[0]) + " experts, but " +
                         key("expert_count") + " is " + std::to_string(experts));
  if (experts > 65536)
    return invalid("key " + key("expert_count") + " is " + std::to_string(experts) + ", which no model can have");
  if (!traits.experts)
    return unsupported("the model is a mixture of " + std::to_string(experts) + " experts (" + key("expert_count") +
                       "), which this compiler does not build for this architecture");
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t dense, file_.get_u64_or(key("leading_dense_block_count"), 0));
  for (size_t i = 0; i < model_.layers.size(); ++i) {
    if (i < dense)
      continue;
    model_.layers[i].feedForward = FeedForward::kExperts;
    model_.layers[i].routing.experts = static_cast<int64_t>(experts);
    model_.layers[i].routing.topK = static_cast<int64_t>(used[i]);
  }
  return readRouting(*traits.experts);
}

Status GgufReader::readRouting(const ExpertTraits& traits) {
  cmf::Scoring scoring = traits.scoring;
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t function, file_.get_u64_or(key("expert_gating_func"), 0));
  if (function > 4)
    return unsupported("key " + key("expert_gating_func") + " is " + std::to_string(function) +
                       ", which is no function that this compiler knows");
  constexpr cmf::Scoring kFunctions[] = {cmf::Scoring::softmax, cmf::Scoring::sigmoid, cmf::Scoring::softmax_selected,
                                         cmf::Scoring::sqrt_softplus};
  if (function != 0)
    scoring = kFunctions[function - 1];
  bool normalize = traits.normalize;
  if (traits.normalizeByKey) {
    CORTIQ_ASSIGN_OR_RETURN(normalize, file_.get_bool_or(key("expert_weights_norm"), false));
  }
  CORTIQ_ASSIGN_OR_RETURN(const double scale, number("expert_weights_scale", 1));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t groups, file_.get_u64_or(key("expert_group_count"), 0));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t groupsUsed, file_.get_u64_or(key("expert_group_used_count"), 0));
  for (LayerDescription& layer : model_.layers) {
    RoutingDescription& routing = layer.routing;
    if (routing.experts == 0)
      continue;
    routing.scoring = scoring;
    if (normalize)
      routing.normMinimum = std::ldexp(1.0, -14);
    routing.scale = scale == 0 ? 1 : scale;
    if (groups <= 1)
      continue;
    const auto experts = static_cast<uint64_t>(routing.experts);
    if (groupsUsed == 0 || groupsUsed > groups || experts % groups != 0 ||
        experts / groups * groupsUsed < static_cast<uint64_t>(routing.topK))
      return invalid("keys " + key("expert_group_count") + " " + std::to_string(groups) + ", " +
                     key("expert_group_used_count") + " " + std::to_string(groupsUsed) + ", " + key("expert_count") +
                     " " + std::to_string(experts) + " and " + key("expert_used_count") + " " +
                     std::to_string(routing.topK) + " do not go together");
    routing.groups = static_cast<int64_t>(groups);
    routing.groupsUsed = static_cast<int64_t>(groupsUsed);
  }
  if (!file_.has(key("expert_feed_forward_length"))) {
    if (traits.width == ExpertWidth::kRequired)
      return invalid("key " + key("expert_feed_forward_length") + " is missing");
    expertWidth_ = feedForward_;
    for (size_t i = 0; traits.width == ExpertWidth::kFeedForwardPerUsed && i < expertWidth_.size(); ++i)
      expertWidth_[i] /= std::max<int64_t>(1, model_.layers[i].routing.topK);
    return {};
  }
  CORTIQ_ASSIGN_OR_RETURN(expertWidth_, perLayer("expert_feed_forward_length", std::nullopt));
  return {};
}

Status GgufReader::readExperts(int64_t index) {
  const int64_t experts = model_.layers[index].routing.experts, width = expertWidth_[index];
  if (width == 0)
    return invalid("the experts of layer " + std::to_string(index) + " have width 0 (" +
                   key("expert_feed_forward_length") + ", or " + key("feed_forward_length") + ")");
  const std::string mlp = layerName(index, "mlp.");
  CORTIQ_RETURN_IF_ERROR(matrix(blockName(index, "ffn_gate_inp.weight"), mlp + "gate.weight", experts, model_.hidden));
  CORTIQ_RETURN_IF_ERROR(optionalVector(blockName(index, "ffn_gate_inp.bias"), mlp + "gate.bias", experts));
  for (const char* bias : {"exp_probs_b.bias", "exp_probs_b"})
    CORTIQ_RETURN_IF_ERROR(optionalVector(blockName(index, bias), mlp + "expert_bias", experts));
  if (const Tensor* both = file_.find(blockName(index, "ffn_gate_up_exps.weight"))) {
    const std::string stem = layerName(index, "mlp");
    CORTIQ_RETURN_IF_ERROR(
        addExpertStack(model_, *both, stem, "gate_proj.weight", experts, 2 * width, 0, width, model_.hidden));
    CORTIQ_RETURN_IF_ERROR(
        addExpertStack(model_, *both, stem, "up_proj.weight", experts, 2 * width, width, width, model_.hidden));
    if (const Tensor* bias = file_.find(blockName(index, "ffn_gate_up_exps.bias"))) {
      CORTIQ_RETURN_IF_ERROR(addExpertStack(model_, *bias, stem, "gate_proj.bias", experts, 2 * width, 0, width, 0));
      CORTIQ_RETURN_IF_ERROR(addExpertStack(model_, *bias, stem, "up_proj.bias", experts, 2 * width, width, width, 0));
    }
  } else {
    CORTIQ_RETURN_IF_ERROR(readExpertPart(index, "gate", width, model_.hidden));
    CORTIQ_RETURN_IF_ERROR(readExpertPart(index, "up", width, model_.hidden));
  }
  CORTIQ_RETURN_IF_ERROR(readExpertPart(index, "down", model_.hidden, width));
  return readSharedExpert(index);
}

// "gate", "up" or "down" of all experts: one stack, or one tensor an expert in the oldest files.
Status GgufReader::readExpertPart(int64_t index, std::string_view part, int64_t rows, int64_t cols) {
  const int64_t experts = model_.layers[index].routing.experts;
  const std::string stem = layerName(index, "mlp"), word(part);
  if (file_.find(blockName(index, "ffn_" + word + ".0.weight"))) {
    for (int64_t e = 0; e < experts; ++e)
      CORTIQ_RETURN_IF_ERROR(matrix(blockName(index, "ffn_" + word + "." + std::to_string(e) + ".weight"),
                                    stem + ".experts." + std::to_string(e) + "." + word + "_proj.weight", rows, cols));
    return {};
  }
  const std::string name = blockName(index, "ffn_" + word + "_exps");
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* stack, require(name + ".weight"));
  CORTIQ_RETURN_IF_ERROR(addExpertStack(model_, *stack, stem, word + "_proj.weight", experts, rows, 0, rows, cols));
  const Tensor* bias = file_.find(name + ".bias");
  return bias ? addExpertStack(model_, *bias, stem, word + "_proj.bias", experts, rows, 0, rows, 0) : Status();
}

// Its width is that of its tensors; keys that state it must agree.
Status GgufReader::readSharedExpert(int64_t index) {
  const Tensor* gate = file_.find(blockName(index, "ffn_gate_shexp.weight"));
  if (!gate)
    return {};
  const uint64_t rows = gate->shape.size() == 2 ? gate->shape[0] : 0;
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t stated, file_.get_u64_or(key("expert_shared_feed_forward_length"), 0));
  if (rows == 0 || rows > static_cast<uint64_t>(kMaxModelSize) || (stated != 0 && rows != stated))
    return invalid("tensor " + formats::quote(gate->name) + " has shape " + formats::shape_text(gate->shape) +
                   (stated != 0 ? ", but " + key("expert_shared_feed_forward_length") + " is " + std::to_string(stated)
                                : ", which no shared expert can have"));
  const auto width = static_cast<int64_t>(rows);
  const std::string mlp = layerName(index, "mlp.");
  CORTIQ_RETURN_IF_ERROR(matrix(gate->name, mlp + "shared_expert.gate_proj.weight", width, model_.hidden));
  CORTIQ_RETURN_IF_ERROR(
      matrix(blockName(index, "ffn_up_shexp.weight"), mlp + "shared_expert.up_proj.weight", width, model_.hidden));
  CORTIQ_RETURN_IF_ERROR(
      matrix(blockName(index, "ffn_down_shexp.weight"), mlp + "shared_expert.down_proj.weight", model_.hidden, width));
  const std::string sharedGate = blockName(index, "ffn_gate_inp_shexp.weight");
  return file_.find(sharedGate) ? matrix(sharedGate, mlp + "shared_expert_gate.weight", 1, model_.hidden) : Status();
}

} // namespace cortiq::compiler
