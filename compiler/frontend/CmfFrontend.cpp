#include "compiler/frontend/CmfFrontend.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "compiler/frontend/cmf/Attention.h"
#include "compiler/frontend/cmf/Draft.h"
#include "compiler/frontend/cmf/FeedForward.h"
#include "compiler/frontend/cmf/Flint.h"
#include "compiler/frontend/cmf/LatentAttention.h"
#include "compiler/frontend/cmf/LinearMixers.h"
#include "compiler/frontend/cmf/Overlay.h"
#include "compiler/frontend/cmf/Prism.h"
#include "compiler/frontend/cmf/Resonance.h"
#include "compiler/frontend/cmf/Ropes.h"
#include "compiler/frontend/cmf/Weights.h"
#include "formats/cmf/cmf_experts.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfArch;
using formats::CmfFile;
using formats::CmfLayerType;
using formats::Tensor;

namespace {

// Reads one file into a description. Every failure is prefixed with the file's name by describeCmf().
class CmfDescriber {
public:
  explicit CmfDescriber(const CmfFile& file) : file_(file), arch_(file.arch()) {}

  StatusOr<ModelDescription> describe() {
    CORTIQ_RETURN_IF_ERROR(checkSizes());
    CORTIQ_RETURN_IF_ERROR(checkCmfFlint(file_));
    CORTIQ_RETURN_IF_ERROR(describeNumbers());
    CORTIQ_RETURN_IF_ERROR(describeCmfRopes(file_, model_));
    if (arch_.mla)
      CORTIQ_RETURN_IF_ERROR(describeCmfLatentSizes(file_, model_));
    CORTIQ_RETURN_IF_ERROR(describeEnds());
    const int64_t layers = static_cast<int64_t>(arch_.num_layers) * arch_.num_loops;
    for (int64_t i = 0; i < layers; ++i)
      CORTIQ_RETURN_IF_ERROR(describeLayer(i));
    if (arch_.loop_final_norm && arch_.num_loops > 1)
      model_.loopLength = arch_.num_layers;
    CORTIQ_RETURN_IF_ERROR(describeDraft());
    CORTIQ_RETURN_IF_ERROR(describeCmfPrism(file_, model_));
    noteCmfGenome(file_, model_);
    CORTIQ_RETURN_IF_ERROR(describeCmfOverlay(file_, model_));
    return std::move(model_);
  }

private:
  Status checkSizes() {
    struct Size {
      const char* name;
      uint32_t value;
    };
    for (const Size& size :
         {Size{"hidden_size", arch_.hidden_size}, Size{"num_layers", arch_.num_layers},
          Size{"num_attention_heads", arch_.num_attention_heads}, Size{"num_kv_heads", arch_.num_kv_heads},
          Size{"head_dim", arch_.head_dim}, Size{"vocab_size", arch_.vocab_size},
          Size{"max_position_embeddings", arch_.max_position_embeddings}})
      if (size.value == 0 || size.value > kMaxModelSize)
        return invalid(std::string("arch.") + size.name + " is " + std::to_string(size.value) +
                       ", which no model can have");
    if (arch_.num_layers > file_.tensors().size())
      return invalid("arch.num_layers is " + std::to_string(arch_.num_layers) + ", but the file has only " +
                     std::to_string(file_.tensors().size()) + " tensors");
    constexpr uint64_t kMaxLayers = 65536;
    if (arch_.num_loops == 0 || arch_.num_loops > kMaxLayers / arch_.num_layers)
      return invalid("arch.num_loops is " + std::to_string(arch_.num_loops) + " for " +
                     std::to_string(arch_.num_layers) + " layers, which no model can have");
    for (const auto* list : {&arch_.attention_heads_per_layer, &arch_.kv_heads_per_layer})
      if (*list && (*list)->size() != arch_.num_layers)
        return invalid(std::string(list == &arch_.kv_heads_per_layer ? "arch.kv_heads_per_layer"
                                                                     : "arch.attention_heads_per_layer") +
                       " has " + std::to_string((*list)->size()) + " entries for " + std::to_string(arch_.num_layers) +
                       " layers");
    for (const auto& [name, present] : {std::pair("arch.kv_heads_per_layer", arch_.kv_heads_per_layer.has_value()),
                                        std::pair("arch.v_head_dim", arch_.v_head_dim.has_value())})
      if (present && (arch_.global_head_dim || arch_.mla))
        return invalid(std::string(name) + " does not go together with " +
                       (arch_.mla ? "arch.mla" : "arch.global_head_dim"));
    return {};
  }

  // What the model that this file was made from calls itself: cortiq-convert and the format's own converter say so.
  std::string describeName() const {
    const auto provenance = file_.header().find("provenance");
    if (provenance == file_.header().end() || !provenance->is_object())
      return {};
    const auto name = provenance->find("source_model");
    return name != provenance->end() && name->is_string() ? name->get<std::string>() : std::string();
  }

  Status describeNumbers() {
    model_.architecture = arch_.arch_name;
    model_.name = describeName();
    model_.hidden = arch_.hidden_size;
    model_.vocab = arch_.vocab_size;
    model_.trainedContext = arch_.max_position_embeddings;
    model_.eps = arch_.rms_norm_eps;
    model_.unitOffsetNorms = arch_.norm_style == formats::CmfNormStyle::kGemma;
    // Any other word runs as silu (specification 1.5).
    if (arch_.hidden_act == "gelu_tanh")
      model_.activation = cmf::Activation::gelu_tanh;
    else if (arch_.hidden_act == "gelu")
      model_.activation = cmf::Activation::gelu;
    else if (arch_.hidden_act == "situ")
      setActivation(cmf::Activation::situ, arch_.activation_situ_beta.value_or(1),
                    arch_.activation_situ_linear_beta.value_or(0));
    else if (arch_.hidden_act == "swigluoai" && arch_.arch_name == "minimax_m3_vl")
      setActivation(cmf::Activation::swigluoai, 1.702, 7);
    model_.embedScale = arch_.embed_multiplier;
    model_.attentionScale = 1 / std::sqrt(arch_.query_pre_attn_scalar.value_or(arch_.head_dim));
    model_.attentionSoftcap = arch_.attn_logit_softcapping.value_or(0);
    model_.finalSoftcap = arch_.final_logit_softcapping.value_or(0);
    model_.logitScale = arch_.logit_multiplier.value_or(1);
    model_.qkNormAfterRope = arch_.qk_norm_after_rope;
    model_.valueNorm = arch_.attn_v_norm;
    struct Number {
      const char* name;
      double value;
      bool ok;
    };
    if (arch_.hidden_act == "situ" && (!(model_.activationAlpha > 0) || !(model_.activationLimit >= 0) ||
                                       !std::isfinite(model_.activationAlpha + model_.activationLimit)))
      return invalid("arch.activation_situ_beta and arch.activation_situ_linear_beta must be positive numbers");
    auto positive = [](double x) { return std::isfinite(x) && x > 0; };
    auto cap = [](double x) { return std::isfinite(x) && x >= 0; };
    for (const Number& n :
         {Number{"rms_norm_eps", model_.eps, cap(model_.eps)},
          Number{"rope_theta", arch_.rope_theta, positive(arch_.rope_theta)},
          Number{"query_pre_attn_scalar", arch_.query_pre_attn_scalar.value_or(1), positive(model_.attentionScale)},
          Number{"attn_logit_softcapping", model_.attentionSoftcap, cap(model_.attentionSoftcap)},
          Number{"final_logit_softcapping", model_.finalSoftcap, cap(model_.finalSoftcap)},
          Number{"embed_multiplier", model_.embedScale, std::isfinite(model_.embedScale)},
          Number{"logit_multiplier", model_.logitScale, std::isfinite(model_.logitScale)}})
      if (!n.ok)
        return invalid(std::string("arch.") + n.name + " is " + std::to_string(n.value) + ", which makes no sense");
    return {};
  }

  void setActivation(cmf::Activation activation, double alpha, double limit) {
    model_.activation = activation;
    model_.activationAlpha = alpha;
    model_.activationLimit = limit;
  }

  // A matrix with one row a token; rows beyond the vocabulary are dropped, those that are missing count as zeros.
  Status tokenMatrix(const std::string& name) {
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, requireCmfTensor(file_, name));
    const uint64_t rows = tensor->shape.size() == 2 ? tensor->shape[0] : 0;
    if (rows == 0 || rows > static_cast<uint64_t>(kMaxModelSize))
      return invalid("tensor " + formats::quote(name) + " has shape " + formats::shape_text(tensor->shape) +
                     ", which no table of " + std::to_string(model_.vocab) + " tokens (arch.vocab_size) can have");
    const int64_t used = std::min(model_.vocab, static_cast<int64_t>(rows));
    return addWeight(model_, name, {tensor, {used, model_.hidden}}, static_cast<int64_t>(rows));
  }

  Status describeEnds() {
    CORTIQ_RETURN_IF_ERROR(tokenMatrix("model.embed_tokens.weight"));
    CORTIQ_RETURN_IF_ERROR(addCmfWeight(file_, model_, "model.norm.weight", {model_.hidden}));
    if (arch_.head_clusters) {
      const int64_t clusters = *arch_.head_clusters;
      if (clusters == 0 || model_.vocab % clusters != 0)
        return invalid("arch.head_clusters is " + std::to_string(clusters) + ", which does not divide the " +
                       std::to_string(model_.vocab) + " of arch.vocab_size");
      CORTIQ_RETURN_IF_ERROR(addCmfWeight(file_, model_, "lm_head.clusters.weight", {clusters, model_.hidden}));
    }
    if (file_.find("lm_head.weight"))
      return tokenMatrix("lm_head.weight");
    if (!arch_.tie_word_embeddings)
      return invalid("tensor 'lm_head.weight' is missing, and arch.tie_word_embeddings does not say that the "
                     "embedding stands in for it");
    return {};
  }

  // `v` counts the layers of every pass of a looped model; `i` is the one whose tensors it uses. Lists a layer are for
  // the first pass, except key/value heads (specification 3.4).
  Status describeLayer(int64_t v) {
    const int64_t i = v % arch_.num_layers;
    auto name = [&](std::string_view suffix) { return layerName(i, suffix); };
    LayerDescription layer;
    layer.block = i;
    const bool listed = v < arch_.num_layers;
    layer.heads =
        listed && arch_.attention_heads_per_layer ? (*arch_.attention_heads_per_layer)[v] : arch_.num_attention_heads;
    layer.kvHeads = arch_.kv_heads_per_layer ? (*arch_.kv_heads_per_layer)[i] : arch_.num_kv_heads;
    layer.headDim = arch_.head_dim;
    if (!isCmfLocal(arch_, v) && arch_.global_head_dim)
      layer.headDim = *arch_.global_head_dim;
    if (!isCmfLocal(arch_, v) && arch_.num_global_kv_heads)
      layer.kvHeads = *arch_.num_global_kv_heads;
    layer.vDim = arch_.v_head_dim.value_or(layer.headDim);
    setGate(layer);
    if (layer.kvHeads == 0 || layer.heads == 0 || layer.heads % layer.kvHeads != 0 || layer.heads > kMaxModelSize)
      return invalid("layer " + std::to_string(i) + " has " + std::to_string(layer.heads) + " heads and " +
                     std::to_string(layer.kvHeads) + " key/value heads, which do not divide them");
    if (layer.vDim == 0 || layer.vDim > layer.headDim)
      return invalid("arch.v_head_dim is " + std::to_string(layer.vDim) + ", not within 1 and the head size " +
                     std::to_string(layer.headDim));
    if (isCmfLocal(arch_, v)) {
      layer.rope = 1;
      if (!arch_.sliding_window || *arch_.sliding_window == 0)
        return invalid("layer " + std::to_string(i) + " has a sliding window, but arch.sliding_window is missing");
      layer.window = std::min<int64_t>(*arch_.sliding_window, kMaxModelSize);
    }
    CORTIQ_RETURN_IF_ERROR(addCmfWeight(file_, model_, name("input_layernorm.weight"), {model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(addCmfWeight(file_, model_, name("post_attention_layernorm.weight"), {model_.hidden}));
    if (file_.find(name("pre_feedforward_layernorm.weight"))) {
      CORTIQ_RETURN_IF_ERROR(addCmfWeight(file_, model_, name("pre_feedforward_layernorm.weight"), {model_.hidden}));
      CORTIQ_RETURN_IF_ERROR(addCmfWeight(file_, model_, name("post_feedforward_layernorm.weight"), {model_.hidden}));
    }
    if (arch_.arch_name == "flint" && listed && arch_.no_rope_layers &&
        static_cast<size_t>(v) < arch_.no_rope_layers->size() && (*arch_.no_rope_layers)[v]) {
      layer.rope = model_.ropes.size();
      model_.ropes.push_back({});
    }
    CORTIQ_ASSIGN_OR_RETURN(layer.outputScale, layerScalar(name("layer_scalar")));
    if (arch_.layer_type(i) == CmfLayerType::kBoundedAttention || hasCmfLinearMixer(file_, i) ||
        hasCmfLatentAttention(file_, i))
      CORTIQ_RETURN_IF_ERROR(refuseCmfSinks(file_, i));
    if (hasCmfLinearMixer(file_, i))
      CORTIQ_RETURN_IF_ERROR(describeCmfLinearMixer(file_, i, layer, model_));
    else if (hasCmfLatentAttention(file_, i))
      CORTIQ_RETURN_IF_ERROR(describeCmfLatentAttention(file_, i, layer, model_));
    else
      CORTIQ_RETURN_IF_ERROR(describeCmfAttention(file_, i, layer, model_));
    model_.layers.push_back(layer);
    CORTIQ_RETURN_IF_ERROR(describeCmfFeedForward(file_, i, model_));
    model_.layers[v].feedForward = model_.layers[i].feedForward;
    return {};
  }

  // Of families whose attention is gated without a tensor that would show the function.
  void setGate(LayerDescription& layer) const {
    if (arch_.arch_name == "spark2_5" || arch_.arch_name == "lfm3")
      layer.gate = cmf::GateFunction::sigmoid;
  }

  // The block that guesses (specification 3.13), with the attention of the model's global layers.
  Status describeDraft() {
    CORTIQ_ASSIGN_OR_RETURN(const bool present, hasCmfDraft(file_, model_));
    if (!present)
      return {};
    LayerDescription& layer = model_.draft.emplace().layer;
    layer.heads = arch_.num_attention_heads;
    layer.kvHeads = arch_.num_global_kv_heads.value_or(arch_.num_kv_heads);
    layer.headDim = arch_.global_head_dim.value_or(arch_.head_dim);
    layer.vDim = arch_.v_head_dim.value_or(layer.headDim);
    setGate(layer);
    if (layer.kvHeads == 0 || layer.heads % layer.kvHeads != 0 || layer.vDim == 0 || layer.vDim > layer.headDim)
      return invalid("the sizes of its heads do not fit the MTP block 'model.mtp'");
    CORTIQ_RETURN_IF_ERROR(describeCmfDraftEnds(file_, model_));
    if (hasCmfLatentAttention(file_, kDraftBlock))
      CORTIQ_RETURN_IF_ERROR(describeCmfLatentAttention(file_, kDraftBlock, layer, model_));
    else
      CORTIQ_RETURN_IF_ERROR(describeCmfAttention(file_, kDraftBlock, layer, model_));
    return describeCmfFeedForward(file_, kDraftBlock, model_);
  }

  // The one number of an optional tensor.
  StatusOr<double> layerScalar(const std::string& name) const {
    const Tensor* tensor = file_.find(name);
    if (!tensor)
      return 1.0;
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<float> values, formats::decode_tensor(*tensor));
    if (values.size() != 1 || !std::isfinite(values[0]))
      return invalid("tensor " + formats::quote(name) + " has shape " + formats::shape_text(tensor->shape) +
                     ", but it must be one finite number");
    return static_cast<double>(values[0]);
  }

  const CmfFile& file_;
  const CmfArch& arch_;
  ModelDescription model_;
};

} // namespace

StatusOr<ModelDescription> describeCmf(const CmfFile& file) {
  CORTIQ_RETURN_IF_ERROR(file.check_runnable());
  CORTIQ_RETURN_IF_ERROR(formats::check_cmf_experts(file));
  CORTIQ_RETURN_IF_ERROR(refuseCmfFeatures(file));
  StatusOr<ModelDescription> model = CmfDescriber(file).describe();
  if (!model.ok())
    return model.status().with_prefix(formats::quote(file.path()));
  return model;
}

} // namespace cortiq::compiler
