#include "compiler/frontend/cmf/FeedForward.h"

#include "compiler/frontend/cmf/Experts.h"
#include "compiler/frontend/cmf/Weights.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfFile;
using formats::Tensor;

Status describeCmfFeedForward(const CmfFile& file, int64_t i, ModelDescription& model) {
  auto name = [&](std::string_view suffix) { return layerName(i, "mlp." + std::string(suffix)); };
  if (hasCmfExperts(file, i)) {
    CORTIQ_RETURN_IF_ERROR(describeCmfExperts(file, i, model));
    model.layer(i).feedForward = FeedForward::kExperts;
    if (!file.find(name("gate_proj.weight")))
      return {};
    // A dense block beside the experts, each with norms of its own.
    model.layer(i).feedForward = FeedForward::kDualExperts;
    for (const char* norm :
         {"post_feedforward_layernorm_1", "pre_feedforward_layernorm_2", "post_feedforward_layernorm_2"})
      CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, layerName(i, norm + std::string(".weight")), {model.hidden}));
  }
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* gate, requireCmfTensor(file, name("gate_proj.weight")));
  const uint64_t width = gate->shape.size() == 2 ? gate->shape[0] : 0;
  if (width == 0 || width > static_cast<uint64_t>(kMaxModelSize))
    return invalid("tensor " + formats::quote(gate->name) + " has shape " + formats::shape_text(gate->shape) +
                   ", which no feed-forward block can have");
  CORTIQ_RETURN_IF_ERROR(
      addCmfWeight(file, model, name("gate_proj.weight"), {static_cast<int64_t>(width), model.hidden}));
  CORTIQ_RETURN_IF_ERROR(
      addCmfWeight(file, model, name("up_proj.weight"), {static_cast<int64_t>(width), model.hidden}));
  return addCmfWeight(file, model, name("down_proj.weight"), {model.hidden, static_cast<int64_t>(width)});
}

} // namespace cortiq::compiler
