// Prediction blocks of GGUF files (GGUF models 2.2): the first block behind the trunk guesses the token after the next.

#include "compiler/frontend/GgufReader.h"
#include "formats/quote.h"

namespace cortiq::compiler {

namespace {

// Gives what was read as block `index` the names of the block that guesses.
void renameBlock(ModelDescription& model, int64_t index) {
  const std::string from = layerName(index, "");
  while (true) {
    auto at = model.weights.lower_bound(from);
    if (at == model.weights.end() || !at->first.starts_with(from))
      return;
    auto node = model.weights.extract(at);
    node.key() = layerName(kDraftBlock, std::string_view(node.key()).substr(from.size()));
    model.weights.insert(std::move(node));
  }
}

} // namespace

Status GgufReader::readDraft(const DecoderTraits& traits) {
  if (predictors_ == 0)
    return {};
  const int64_t index = static_cast<int64_t>(model_.layers.size()) - predictors_;
  auto name = [&](std::string_view suffix) { return blockName(index, "nextn." + std::string(suffix)); };
  const bool present = file_.find(name("eh_proj.weight")) != nullptr;
  if (!present || predictors_ > 1)
    model_.warnings.push_back(formats::quote(file_.path()) + ": of its " + std::to_string(predictors_) +
                              (predictors_ == 1 ? " prediction block " : " prediction blocks ") +
                              (present
                                   ? "only the first is used"
                                   : "none is used: tensor " + formats::quote(name("eh_proj.weight")) + " is missing"));
  if (present) {
    LayerDescription& layer = model_.layers[index];
    if (layer.mixer == Mixer::kGatedDelta || layer.mixer == Mixer::kShortConv)
      layer.mixer = Mixer::kAttention;
    layer.window.reset();
    layer.rope = 0;
    if (layer.heads == 0 || layer.kvHeads == 0)
      return invalid("block " + std::to_string(index) + " is a prediction block without attention heads (" +
                     key("attention.head_count") + ", " + key("attention.head_count_kv") + ")");
    CORTIQ_RETURN_IF_ERROR(readLayer(index, traits));
    CORTIQ_RETURN_IF_ERROR(
        matrix(name("eh_proj.weight"), "model.mtp.eh_proj.weight", model_.hidden, 2 * model_.hidden));
    CORTIQ_RETURN_IF_ERROR(vector(name("enorm.weight"), "model.mtp.enorm.weight", model_.hidden));
    CORTIQ_RETURN_IF_ERROR(vector(name("hnorm.weight"), "model.mtp.hnorm.weight", model_.hidden));
    const std::string norm = name("shared_head_norm.weight");
    CORTIQ_RETURN_IF_ERROR(vector(file_.find(norm) ? norm : traits.outputNorm + std::string(".weight"),
                                  "model.mtp.norm.weight", model_.hidden));
    for (const auto& [file, canonical] : {std::pair("embed_tokens.weight", "model.mtp.embed_tokens.weight"),
                                          std::pair("shared_head_head.weight", "model.mtp.lm_head.weight")})
      if (file_.find(name(file)))
        CORTIQ_RETURN_IF_ERROR(matrix(name(file), canonical, model_.vocab, model_.hidden));
    renameBlock(model_, index);
    model_.draft = DraftDescription{model_.layers[index]};
  }
  model_.layers.resize(index);
  return {};
}

} // namespace cortiq::compiler
