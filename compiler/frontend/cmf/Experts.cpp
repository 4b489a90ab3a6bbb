#include "compiler/frontend/cmf/Experts.h"

#include <cmath>

#include "compiler/frontend/cmf/Resonance.h"
#include "compiler/frontend/cmf/Weights.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfFile;
using formats::CmfMoe;
using formats::Tensor;

namespace {

/// One layer's experts on their way into the description.
class ExpertDescriber {
public:
  ExpertDescriber(const CmfFile& file, int64_t index, ModelDescription& model)
      : file_(file), index_(index), model_(model) {}

  Status describe() {
    if (!file_.arch().moe)
      return invalid("tensor " + formats::quote(name("gate.weight")) +
                     " is a router of experts, but arch.moe is missing");
    RoutingDescription& routing = model_.layer(index_).routing;
    routing.experts = countExperts(*file_.arch().moe);
    if (routing.experts == 0)
      return invalid("tensor " + formats::quote(name("experts.0.gate_proj.weight")) + " is missing");
    if (hasCmfResonance(file_, index_))
      return describeResonant(routing);
    CORTIQ_RETURN_IF_ERROR(describeRouting(routing));
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* router, requireCmfTensor(file_, name("gate.weight")));
    if (router->shape.size() == 2 && router->shape[0] != static_cast<uint64_t>(routing.experts))
      return invalid("tensor " + formats::quote(router->name) + " has " + std::to_string(router->shape[0]) +
                     " rows, but layer " + std::to_string(index_) + " has " + std::to_string(routing.experts) +
                     " experts");
    CORTIQ_RETURN_IF_ERROR(addWeight(model_, router->name, {router, {routing.experts, model_.hidden}}));
    CORTIQ_RETURN_IF_ERROR(optionalVector("expert_bias"));
    CORTIQ_RETURN_IF_ERROR(optionalVector("per_expert_scale"));
    for (int64_t e = 0; e < routing.experts; ++e)
      CORTIQ_RETURN_IF_ERROR(describeBlock("experts." + std::to_string(e)));
    return describeShared();
  }

private:
  // Descriptors choose the experts: those of the layer, then those that records append.
  Status describeResonant(RoutingDescription& routing) {
    if (file_.find(name("gate_proj.weight")))
      return unsupported("layer " + std::to_string(index_) +
                         " has a dense block beside experts that are chosen by resonance");
    const int64_t own = routing.experts;
    const std::vector<GrownExpert> grown = grownExperts(file_, index_);
    routing.experts += static_cast<int64_t>(grown.size());
    routing.resonance = true;
    CORTIQ_RETURN_IF_ERROR(describeRouting(routing));
    CORTIQ_RETURN_IF_ERROR(describeCmfResonance(file_, index_, own, grown, model_));
    if (routing.topK == 1) {
      // The best score wins, whatever it is worth, and its expert counts by the factor alone.
      routing.scoring = cmf::Scoring::softmax_selected;
      routing.normEpsilon.reset();
    } else {
      CORTIQ_RETURN_IF_ERROR(optionalVector("expert_bias"));
      CORTIQ_RETURN_IF_ERROR(optionalVector("per_expert_scale"));
    }
    for (int64_t e = 0; e < own; ++e)
      CORTIQ_RETURN_IF_ERROR(describeBlock("experts." + std::to_string(e)));
    for (size_t i = 0; i < grown.size(); ++i)
      CORTIQ_RETURN_IF_ERROR(
          describeGrown("experts." + std::to_string(own + static_cast<int64_t>(i)), grown[i].prefix));
    return describeShared();
  }

  // Its tensors have the shapes of the layer's expert 0: the reader has seen to that.
  Status describeGrown(const std::string& stem, const std::string& prefix) {
    const auto width = static_cast<int64_t>(file_.find(name("experts.0.gate_proj.weight"))->shape[0]);
    for (const char* part : {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}) {
      CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, requireCmfTensor(file_, prefix + part));
      const bool down = part == std::string_view("down_proj.weight");
      CORTIQ_RETURN_IF_ERROR(addWeight(
          model_, name(stem + "." + part),
          {tensor, down ? std::vector<int64_t>{model_.hidden, width} : std::vector<int64_t>{width, model_.hidden}}));
    }
    return {};
  }

  std::string name(const std::string& suffix) const { return layerName(index_, "mlp." + suffix); }

  int64_t countExperts(const CmfMoe& moe) const {
    int64_t count = 0;
    while (count < static_cast<int64_t>(moe.num_experts) &&
           file_.find(name("experts." + std::to_string(count) + ".gate_proj.weight")))
      ++count;
    return count;
  }

  Status describeRouting(RoutingDescription& routing) const {
    const CmfMoe& moe = *file_.arch().moe;
    if (moe.top_k == 0)
      return invalid("arch.moe.top_k is 0, so that no expert would ever be used");
    routing.topK = std::min<int64_t>(moe.top_k, routing.experts);
    routing.scoring = moe.router_sigmoid ? cmf::Scoring::sigmoid : cmf::Scoring::softmax;
    if (moe.norm_topk_prob) {
      const std::string& architecture = file_.arch().arch_name;
      const bool tiny = architecture == "flint" || architecture == "minimax_m3_vl";
      routing.normEpsilon = !moe.router_sigmoid ? 0.0 : tiny ? 1e-20 : 1e-6;
    }
    routing.scale = moe.routed_scaling_factor.value_or(1);
    if (!std::isfinite(routing.scale))
      return invalid("arch.moe.routed_scaling_factor is not finite");
    return {};
  }

  Status describeBlock(const std::string& stem) {
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* gate, requireCmfTensor(file_, name(stem + ".gate_proj.weight")));
    const uint64_t width = gate->shape.size() == 2 ? gate->shape[0] : 0;
    if (width == 0 || width > static_cast<uint64_t>(kMaxModelSize))
      return invalid("tensor " + formats::quote(gate->name) + " has shape " + formats::shape_text(gate->shape) +
                     ", which no expert can have");
    const auto rows = static_cast<int64_t>(width);
    CORTIQ_RETURN_IF_ERROR(matrix(stem + ".gate_proj.weight", rows, model_.hidden));
    CORTIQ_RETURN_IF_ERROR(matrix(stem + ".up_proj.weight", rows, model_.hidden));
    return matrix(stem + ".down_proj.weight", model_.hidden, rows);
  }

  Status describeShared() {
    if (!file_.find(name("shared_expert.gate_proj.weight")))
      return {};
    CORTIQ_RETURN_IF_ERROR(describeBlock("shared_expert"));
    return file_.find(name("shared_expert_gate.weight")) ? matrix("shared_expert_gate.weight", 1, model_.hidden)
                                                         : Status();
  }

  Status matrix(const std::string& suffix, int64_t rows, int64_t cols) {
    return addCmfWeight(file_, model_, name(suffix), {rows, cols});
  }

  Status optionalVector(const std::string& suffix) {
    return addOptionalCmfWeight(file_, model_, name(suffix), {model_.layer(index_).routing.experts});
  }

  const CmfFile& file_;
  int64_t index_;
  ModelDescription& model_;
};

} // namespace

bool hasCmfExperts(const CmfFile& file, int64_t index) {
  return file.find(layerName(index, "mlp.gate.weight")) != nullptr || hasCmfResonance(file, index);
}

Status describeCmfExperts(const CmfFile& file, int64_t index, ModelDescription& model) {
  return ExpertDescriber(file, index, model).describe();
}

} // namespace cortiq::compiler
