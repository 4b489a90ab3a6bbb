#include "compiler/frontend/cmf/Draft.h"

#include "compiler/frontend/cmf/Weights.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfFile;
using formats::CmfMtp;
using formats::Tensor;

namespace {

constexpr const char* kEmbedding = "model.mtp.embed_tokens.weight";
constexpr const char* kHead = "model.mtp.lm_head.weight";

// arch.mtp.ffn_intermediate_sizes states the width of a dense block.
Status checkWidth(const CmfFile& file, const CmfMtp& mtp) {
  if (mtp.ffn_intermediate_sizes.empty())
    return {};
  const Tensor* gate = file.find(layerName(kDraftBlock, "mlp.gate_proj.weight"));
  if (mtp.ffn_intermediate_sizes.size() != mtp.num_layers || !gate || gate->shape.empty() ||
      file.find(layerName(kDraftBlock, "mlp.gate.weight")) || mtp.ffn_intermediate_sizes[0] == 0 ||
      gate->shape[0] != mtp.ffn_intermediate_sizes[0])
    return invalid("arch.mtp.ffn_intermediate_sizes does not fit the MTP block, whose gate is " +
                   (gate ? formats::shape_text(gate->shape) : "missing"));
  return {};
}

} // namespace

StatusOr<bool> hasCmfDraft(const CmfFile& file, ModelDescription& model) {
  if (!file.find(layerName(kDraftBlock, "self_attn.q_proj.weight")) && !file.find("model.mtp.eh_proj.weight"))
    return false;
  auto without = [&](const std::string& why) {
    model.warnings.push_back(formats::quote(file.path()) + ": its MTP block is left out: " + why);
    return false;
  };
  const CmfMtp mtp = file.arch().mtp.value_or(CmfMtp{1, {}, true, true});
  if (file.arch().arch_name == "mimo_v2")
    return without("that of architecture 'mimo_v2' has a stack of its own");
  if (mtp.num_layers != 1)
    return invalid("arch.mtp.num_layers is " + std::to_string(mtp.num_layers) + ", but a model has one MTP block");
  CORTIQ_RETURN_IF_ERROR(checkWidth(file, mtp));
  if (!mtp.share_embed && !file.find(kEmbedding))
    return without("it shares no embedding and has none of its own (" + formats::quote(kEmbedding) + ")");
  if (!mtp.share_lm_head && !file.find(kHead))
    return without("it shares no head and has none of its own (" + formats::quote(kHead) + ")");
  return true;
}

Status describeCmfDraftEnds(const CmfFile& file, ModelDescription& model) {
  for (const char* norm : {"model.mtp.enorm.weight", "model.mtp.hnorm.weight", "model.mtp.norm.weight"})
    CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, norm, {model.hidden}));
  CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, "model.mtp.eh_proj.weight", {model.hidden, 2 * model.hidden}));
  for (const char* norm : {"input_layernorm.weight", "post_attention_layernorm.weight"})
    CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, layerName(kDraftBlock, norm), {model.hidden}));
  for (const char* norm : {"pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight"})
    if (file.find(layerName(kDraftBlock, "pre_feedforward_layernorm.weight")))
      CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, layerName(kDraftBlock, norm), {model.hidden}));
  for (const char* own : {kEmbedding, kHead})
    if (file.find(own))
      CORTIQ_RETURN_IF_ERROR(addCmfWeight(file, model, own, {model.vocab, model.hidden}));
  return {};
}

} // namespace cortiq::compiler
