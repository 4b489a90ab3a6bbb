#include "compiler/frontend/cmf/Prism.h"

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfFile;
using formats::Json;

namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";

/// Lists name weights with or without the wrapper's prefix.
std::string bareName(const std::string& name) {
  constexpr std::string_view kWrapper = "language_model.";
  return name.starts_with(kWrapper) ? name.substr(kWrapper.size()) : name;
}

Status describeSigns(const Json& record, HadamardTransform& transform) {
  const auto signs = record["signs"].get<std::vector<double>>();
  size_t at = 0;
  for (const int64_t width : record["widths"].get<std::vector<int64_t>>()) {
    std::vector<bool> negative;
    for (int64_t i = 0; i < width; ++i)
      negative.push_back(signs[at++] < 0);
    if (width == 0 || !transform.negative.emplace(width, std::move(negative)).second)
      return invalid("arch.prism_hadamard.widths has " + std::to_string(width) +
                     ", which is none or stands there twice");
  }
  return {};
}

Status describeLists(const Json& record, const CmfFile& file, const ModelDescription& model,
                     HadamardTransform& transform) {
  std::map<std::string, const WeightRef*> byTensor;
  for (const auto& [name, weight] : model.weights)
    byTensor.emplace(weight.tensor->name, &weight);
  for (const auto& listed : record["forward_weight_names"].get<std::vector<std::string>>()) {
    const std::string name = bareName(listed);
    const auto weight = byTensor.find(name);
    if (weight == byTensor.end() || weight->second->shape.size() != 2 || name.find(".experts.") != name.npos)
      return unsupported("arch.prism_hadamard.forward_weight_names has " + formats::quote(listed) +
                         (file.find(name) ? ", which is no product of a layer" : ", which is no tensor of the file"));
    if (!transform.negative.contains(weight->second->shape[1]))
      return invalid("arch.prism_hadamard.forward_weight_names has " + formats::quote(listed) +
                     ", but no signs for its " + std::to_string(weight->second->shape[1]) + " columns");
    transform.weights.insert(name);
  }
  for (const auto& listed : record["inverse_weight_names"].get<std::vector<std::string>>())
    if (bareName(listed) != kEmbedding)
      return unsupported("arch.prism_hadamard.inverse_weight_names has " + formats::quote(listed) +
                         ", of which no rows are looked up");
  return {};
}

} // namespace

// The reader has held the block against its rules already.
Status describeCmfPrism(const CmfFile& file, ModelDescription& model) {
  if (!file.arch().has_family_block("prism_hadamard"))
    return {};
  const Json& record = file.header()["arch"]["prism_hadamard"];
  HadamardTransform& transform = model.hadamard;
  transform.block = record["block_size"].get<int64_t>();
  transform.half = record.value("activation_f16", false);
  CORTIQ_RETURN_IF_ERROR(describeSigns(record, transform));
  CORTIQ_RETURN_IF_ERROR(describeLists(record, file, model, transform));
  if (!transform.negative.contains(model.hidden))
    return invalid("arch.prism_hadamard has no signs for the " + std::to_string(model.hidden) +
                   " features of the embedding");
  if (!model.find("lm_head.weight") && !transform.weights.contains(kEmbedding))
    return unsupported("the head is tied to an embedding behind a transform, which "
                       "arch.prism_hadamard.forward_weight_names does not list");
  if (!record.value("gdn_v_grouped", false) && model.linear.keyHeads != model.linear.valueHeads)
    return unsupported("arch.prism_hadamard.gdn_v_grouped is not set: an order of value heads that this compiler does "
                       "not know");
  model.unitOffsetNorms = false; // whatever the header says
  return {};
}

} // namespace cortiq::compiler
