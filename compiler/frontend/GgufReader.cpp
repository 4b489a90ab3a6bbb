#include "compiler/frontend/GgufReader.h"

#include <algorithm>
#include <cmath>

#include "formats/quote.h"

namespace cortiq::compiler {

using formats::Tensor;

std::string blockName(int64_t layer, std::string_view suffix) {
  return "blk." + std::to_string(layer) + "." + std::string(suffix);
}

//===--- Keys
//-------------------------------------------------------------------------------------------------------===//

StatusOr<int64_t> GgufReader::size(std::string_view suffix, std::optional<int64_t> otherwise) const {
  const std::string name = key(suffix);
  if (otherwise && !file_.has(name))
    return *otherwise;
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t value, file_.get_u64(name));
  if (value == 0 || value > static_cast<uint64_t>(kMaxModelSize))
    return invalid("key " + name + " is " + std::to_string(value) + ", which no model can have");
  return static_cast<int64_t>(value);
}

StatusOr<std::vector<int64_t>> GgufReader::perLayer(std::string_view suffix, std::optional<int64_t> otherwise) const {
  const std::string name = key(suffix);
  const size_t layers = model_.layers.size();
  if (otherwise && !file_.has(name))
    return std::vector<int64_t>(layers, *otherwise);
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint64_t> values, file_.get_per_layer_u64(name, layers));
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] > static_cast<uint64_t>(kMaxModelSize))
      return invalid("key " + name + " is " + std::to_string(values[i]) + " for layer " + std::to_string(i) +
                     ", which no model can have");
  return std::vector<int64_t>(values.begin(), values.end());
}

StatusOr<double> GgufReader::number(std::string_view suffix, double otherwise) const {
  CORTIQ_ASSIGN_OR_RETURN(const double value, file_.get_f64_or(key(suffix), otherwise));
  if (!std::isfinite(value))
    return invalid("key " + key(suffix) + " is not a finite number");
  return value;
}

//===--- Numbers of the model
//---------------------------------------------------------------------------------------===//

Status GgufReader::readArchitecture() {
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view architecture, file_.architecture());
  model_.architecture = std::string(architecture);
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view name, file_.get_string_or("general.name", ""));
  // The IR holds text, and a title need not be any.
  if (formats::is_utf8(name))
    model_.name = std::string(name);
  return {};
}

Status GgufReader::readSizes() {
  CORTIQ_ASSIGN_OR_RETURN(const int64_t blocks, size("block_count"));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t predictors, file_.get_u64_or(key("nextn_predict_layers"), 0));
  if (static_cast<uint64_t>(blocks) > file_.tensors().size())
    return invalid("key " + key("block_count") + " is " + std::to_string(blocks) + ", but the file has only " +
                   std::to_string(file_.tensors().size()) + " tensors");
  if (predictors >= static_cast<uint64_t>(blocks))
    return invalid("key " + key("nextn_predict_layers") + " is " + std::to_string(predictors) + " of " +
                   std::to_string(blocks) + " blocks (" + key("block_count") + "), which leaves no model");
  // Lists a layer have an entry for every block.
  model_.layers.resize(blocks);
  predictors_ = static_cast<int64_t>(predictors);
  CORTIQ_ASSIGN_OR_RETURN(model_.trainedContext, size("context_length"));
  CORTIQ_ASSIGN_OR_RETURN(model_.hidden, size("embedding_length"));
  // A model whose layers all have experts needs no width of dense blocks.
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t experts, file_.get_u64_or(key("expert_count"), 0));
  CORTIQ_ASSIGN_OR_RETURN(feedForward_,
                          perLayer("feed_forward_length", experts != 0 ? std::optional<int64_t>(0) : std::nullopt));
  return {};
}

Status GgufReader::readHeads(const DecoderTraits& traits) {
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<int64_t> heads, perLayer("attention.head_count", std::nullopt));
  std::vector<int64_t> kvHeads = heads;
  if (file_.has(key("attention.head_count_kv"))) {
    CORTIQ_ASSIGN_OR_RETURN(kvHeads, perLayer("attention.head_count_kv", std::nullopt));
  }
  for (size_t i = 0; i < model_.layers.size(); ++i) {
    if (traits.recurrent == RecurrentMixer::kShortConv && kvHeads[i] == 0) {
      model_.layers[i].mixer = Mixer::kShortConv;
      continue;
    }
    if (heads[i] == 0 || kvHeads[i] == 0)
      return unsupported("layer " + std::to_string(i) + " has no attention (" + key("attention.head_count") + " " +
                         std::to_string(heads[i]) + ", " + key("attention.head_count_kv") + " " +
                         std::to_string(kvHeads[i]) + "), which this compiler does not build for this architecture");
    if (heads[i] % kvHeads[i] != 0)
      return invalid("key " + key("attention.head_count") + " is " + std::to_string(heads[i]) + ", not a multiple of " +
                     key("attention.head_count_kv") + ", which is " + std::to_string(kvHeads[i]) + " (layer " +
                     std::to_string(i) + ")");
    model_.layers[i].heads = heads[i];
    model_.layers[i].kvHeads = kvHeads[i];
  }
  // Layers without attention may say 0.
  const int64_t some = std::max<int64_t>(1, *std::max_element(heads.begin(), heads.end()));
  const int64_t plain = model_.hidden / some;
  CORTIQ_ASSIGN_OR_RETURN(keyLength_, size("attention.key_length", plain));
  CORTIQ_ASSIGN_OR_RETURN(valueLength_, size("attention.value_length", plain));
  if (keyLength_ == 0 || valueLength_ == 0)
    return invalid("key " + key("attention.head_count") + " is " + std::to_string(some) + ", more than " +
                   key("embedding_length") + ", which is " + std::to_string(model_.hidden));
  if (keyLength_ % 2 != 0)
    return invalid("the head size is " + std::to_string(keyLength_) + " (" + key("attention.key_length") + ", or " +
                   key("embedding_length") + " " + std::to_string(model_.hidden) + " / " + key("attention.head_count") +
                   " " + std::to_string(some) + "), an odd number");
  for (LayerDescription& layer : model_.layers) {
    layer.headDim = keyLength_;
    layer.vDim = valueLength_;
  }
  return {};
}

Status GgufReader::readNumbers(const DecoderTraits& traits) {
  const std::string eps = key(traits.layerNorms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
  CORTIQ_ASSIGN_OR_RETURN(model_.eps, file_.get_f64(eps));
  if (!std::isfinite(model_.eps) || model_.eps < 0)
    return invalid("key " + eps + " is " + std::to_string(model_.eps) + ", not a number of at least 0");
  CORTIQ_ASSIGN_OR_RETURN(model_.attentionScale, number("attention.scale", 0));
  if (model_.attentionScale == 0)
    model_.attentionScale = 1 / std::sqrt(static_cast<double>(keyLength_));
  CORTIQ_ASSIGN_OR_RETURN(model_.attentionSoftcap, number("attn_logit_softcapping", traits.attentionSoftcap));
  CORTIQ_ASSIGN_OR_RETURN(model_.finalSoftcap, number("final_logit_softcapping", traits.finalSoftcap));
  if (model_.attentionScale < 0 || model_.attentionSoftcap < 0 || model_.finalSoftcap < 0)
    return invalid("one of " + key("attention.scale") + ", " + key("attn_logit_softcapping") + " and " +
                   key("final_logit_softcapping") + " is negative");
  for (const char* suffix : {"attention.clamp_kqv", "attention.max_alibi_bias"}) {
    CORTIQ_ASSIGN_OR_RETURN(const double value, number(suffix, 0));
    if (value != 0)
      return unsupported("key " + key(suffix) + " is " + std::to_string(value) +
                         ", which this compiler does not build for this architecture");
  }
  CORTIQ_ASSIGN_OR_RETURN(const bool causal, file_.get_bool_or(key("attention.causal"), true));
  if (!causal)
    return unsupported("key " + key("attention.causal") + " is false: this is an encoder, which generates no text");
  model_.layerNorms = traits.layerNorms;
  model_.activation = traits.activation;
  model_.qkNormWhole = traits.headNorms == HeadNorms::kWholeVector;
  CORTIQ_RETURN_IF_ERROR(readScales(traits));
  return traits.temperature ? readTemperature() : Status();
}

//===--- Tensors
//----------------------------------------------------------------------------------------------------===//

StatusOr<const Tensor*> GgufReader::require(const std::string& name) const {
  if (const Tensor* tensor = file_.find(name))
    return tensor;
  return invalid("tensor " + formats::quote(name) + " is missing");
}

Status GgufReader::matrix(const std::string& name, const std::string& canonical, int64_t rows, int64_t cols) {
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, require(name));
  return addWeight(model_, canonical, {tensor, {rows, cols}});
}

Status GgufReader::vector(const std::string& name, const std::string& canonical, int64_t size) {
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, require(name));
  return addWeight(model_, canonical, {tensor, {size}});
}

Status GgufReader::optionalVector(const std::string& name, const std::string& canonical, int64_t size) {
  return file_.find(name) ? vector(name, canonical, size) : Status();
}

Status GgufReader::readEnds(const DecoderTraits& traits) {
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* embedding, require("token_embd.weight"));
  if (embedding->shape.size() != 2 || embedding->shape[0] == 0 ||
      embedding->shape[0] > static_cast<uint64_t>(kMaxModelSize))
    return invalid("tensor 'token_embd.weight' has shape " + formats::shape_text(embedding->shape) +
                   ", which no embedding can have");
  model_.vocab = static_cast<int64_t>(embedding->shape[0]);
  CORTIQ_RETURN_IF_ERROR(checkVocabulary());
  CORTIQ_RETURN_IF_ERROR(matrix("token_embd.weight", "model.embed_tokens.weight", model_.vocab, model_.hidden));
  CORTIQ_RETURN_IF_ERROR(vector(traits.outputNorm + std::string(".weight"), "model.norm.weight", model_.hidden));
  if (model_.layerNorms)
    CORTIQ_RETURN_IF_ERROR(optionalVector("output_norm.bias", "model.norm.bias", model_.hidden));
  if (file_.find("output.weight"))
    CORTIQ_RETURN_IF_ERROR(matrix("output.weight", "lm_head.weight", model_.vocab, model_.hidden));
  return optionalVector("output.bias", "lm_head.bias", model_.vocab);
}

// Lists of the tokenizer that have one entry a token, held against each other and against the embedding.
Status GgufReader::checkVocabulary() const {
  auto length = [&](const char* name) -> StatusOr<std::optional<uint64_t>> {
    const formats::GgufEntry* entry = file_.entry(name);
    if (!entry)
      return std::optional<uint64_t>();
    const auto* array = std::get_if<formats::GgufArray>(&entry->value);
    if (!array)
      return invalid("key " + std::string(name) + " is of type " + std::string(formats::gguf_type_name(entry->type)) +
                     ", not an array");
    return std::optional<uint64_t>(array->size);
  };
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> tokens, length("tokenizer.ggml.tokens"));
  if (tokens && *tokens != static_cast<uint64_t>(model_.vocab))
    return invalid("tensor 'token_embd.weight' has " + std::to_string(model_.vocab) +
                   " rows, but tokenizer.ggml.tokens has " + std::to_string(*tokens) + " entries");
  for (const char* name : {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> entries, length(name));
    if (tokens && entries && *entries < *tokens)
      return invalid("key " + std::string(name) + " has " + std::to_string(*entries) + " entries, fewer than the " +
                     std::to_string(*tokens) + " of tokenizer.ggml.tokens");
  }
  return {};
}

Status GgufReader::readAttention(int64_t index, const DecoderTraits& traits) {
  const LayerDescription& layer = model_.layers[index];
  struct Part {
    const char* file;
    const char* canonical;
    int64_t rows, head;
  };
  // Rows that are never rotated keep their order.
  const int64_t head = traits.pairing == RopePairing::kNeighbours ? keyLength_ : 0;
  const Part parts[] = {{"attn_q", "q_proj", layer.heads * keyLength_, head},
                        {"attn_k", "k_proj", layer.kvHeads * keyLength_, head},
                        {"attn_v", "v_proj", layer.kvHeads * valueLength_, 0}};
  const int64_t all = parts[0].rows + parts[1].rows + parts[2].rows;
  const bool fused = !traits.gatedQueries && file_.find(blockName(index, "attn_qkv.weight")) != nullptr;
  int64_t first = 0;
  for (const Part& part : parts) {
    if (traits.gatedQueries && &part == parts) {
      CORTIQ_RETURN_IF_ERROR(readGatedQueries(index));
      continue;
    }
    const std::string stem = blockName(index, fused ? "attn_qkv" : part.file);
    const std::string canonical = layerName(index, std::string("self_attn.") + part.canonical);
    const std::optional<int64_t> fileRows = fused ? std::optional(all) : std::nullopt;
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* weight, require(stem + ".weight"));
    CORTIQ_RETURN_IF_ERROR(addWeight(model_, canonical + ".weight",
                                     {weight, {part.rows, model_.hidden}, fused ? first : 0, part.head}, fileRows));
    if (const Tensor* bias = file_.find(stem + ".bias"))
      CORTIQ_RETURN_IF_ERROR(
          addWeight(model_, canonical + ".bias", {bias, {part.rows}, fused ? first : 0, part.head}, fileRows));
    first += part.rows;
  }
  if (traits.headNorms != HeadNorms::kNone) {
    const bool whole = traits.headNorms == HeadNorms::kWholeVector;
    CORTIQ_RETURN_IF_ERROR(vector(blockName(index, "attn_q_norm.weight"), layerName(index, "self_attn.q_norm.weight"),
                                  whole ? layer.heads * keyLength_ : keyLength_));
    CORTIQ_RETURN_IF_ERROR(vector(blockName(index, "attn_k_norm.weight"), layerName(index, "self_attn.k_norm.weight"),
                                  whole ? layer.kvHeads * keyLength_ : keyLength_));
  }
  if (traits.sinks) {
    // Older files have no ".weight" there.
    const std::string name = blockName(index, "attn_sinks");
    CORTIQ_RETURN_IF_ERROR(
        vector(file_.find(name) ? name : name + ".weight", layerName(index, "self_attn.sinks"), layer.heads));
  }
  CORTIQ_RETURN_IF_ERROR(matrix(blockName(index, "attn_output.weight"), layerName(index, "self_attn.o_proj.weight"),
                                model_.hidden, layer.heads * valueLength_));
  return optionalVector(blockName(index, "attn_output.bias"), layerName(index, "self_attn.o_proj.bias"), model_.hidden);
}

// Each head has its query rows, then as many of its gate. None of these files permutes them.
Status GgufReader::readGatedQueries(int64_t index) {
  const int64_t head = keyLength_, rows = model_.layers[index].heads * head;
  for (const char* kind : {".weight", ".bias"}) {
    const bool matrix = kind == std::string_view(".weight");
    const std::string name = blockName(index, std::string("attn_q") + kind);
    if (!matrix && !file_.find(name))
      continue;
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, require(name));
    const std::vector<int64_t> shape = matrix ? std::vector<int64_t>{rows, model_.hidden} : std::vector<int64_t>{rows};
    const std::string stem = layerName(index, "self_attn.q_proj");
    CORTIQ_RETURN_IF_ERROR(addWeight(model_, stem + kind, {tensor, shape, 0, 0, head, 2 * head}, 2 * rows));
    CORTIQ_RETURN_IF_ERROR(
        addWeight(model_, stem + ".gate" + kind, {tensor, shape, head, 0, head, 2 * head}, 2 * rows));
  }
  return {};
}

Status GgufReader::readFeedForward(int64_t index, const DecoderTraits& traits) {
  if (model_.layers[index].feedForward == FeedForward::kExperts)
    return readExperts(index);
  const int64_t width = feedForward_[index];
  if (width == 0)
    return invalid("key " + key("feed_forward_length") + " is 0 for layer " + std::to_string(index) +
                   ", which has no experts either");
  if (traits.gate == GateTensors::kNone)
    model_.layers[index].feedForward = FeedForward::kPlain;
  struct Part {
    const char* file;
    const char* canonical;
    int64_t rows, cols, first;
  };
  const bool fused = traits.gate == GateTensors::kFused;
  const Part parts[] = {{fused ? "ffn_up" : "ffn_gate", "gate_proj", width, model_.hidden, 0},
                        {"ffn_up", "up_proj", width, model_.hidden, fused ? width : 0},
                        {"ffn_down", "down_proj", model_.hidden, width, 0}};
  for (const Part& part : parts) {
    if (&part == parts && traits.gate == GateTensors::kNone)
      continue;
    const std::string stem = blockName(index, part.file);
    const std::string canonical = layerName(index, std::string("mlp.") + part.canonical);
    const std::optional<int64_t> fileRows = fused && &part != &parts[2] ? std::optional(2 * width) : std::nullopt;
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* weight, require(stem + ".weight"));
    CORTIQ_RETURN_IF_ERROR(
        addWeight(model_, canonical + ".weight", {weight, {part.rows, part.cols}, part.first}, fileRows));
    if (const Tensor* bias = file_.find(stem + ".bias"))
      CORTIQ_RETURN_IF_ERROR(addWeight(model_, canonical + ".bias", {bias, {part.rows}, part.first}, fileRows));
  }
  return {};
}

Status GgufReader::readMixer(int64_t index, const DecoderTraits& traits) {
  if (model_.layers[index].mixer == Mixer::kShortConv)
    return readShortConv(index);
  if (model_.layers[index].mixer == Mixer::kGatedDelta)
    return readGatedDelta(index);
  return traits.latent ? readLatentAttention(index, traits) : readAttention(index, traits);
}

Status GgufReader::readLayer(int64_t index, const DecoderTraits& traits) {
  for (const BlockNorm& norm : traits.norms) {
    const std::string stem = blockName(index, norm.file), canonical = layerName(index, norm.canonical);
    CORTIQ_RETURN_IF_ERROR(vector(stem + ".weight", canonical + ".weight", model_.hidden));
    if (traits.layerNorms)
      CORTIQ_RETURN_IF_ERROR(optionalVector(stem + ".bias", canonical + ".bias", model_.hidden));
  }
  CORTIQ_RETURN_IF_ERROR(readMixer(index, traits));
  return readFeedForward(index, traits);
}

Status GgufReader::describeDecoder(const DecoderTraits& traits) {
  CORTIQ_RETURN_IF_ERROR(readSizes());
  CORTIQ_RETURN_IF_ERROR(readHeads(traits));
  CORTIQ_RETURN_IF_ERROR(readMixers(traits));
  if (traits.latent)
    CORTIQ_RETURN_IF_ERROR(readLatentSizes());
  CORTIQ_RETURN_IF_ERROR(readNumbers(traits));
  CORTIQ_RETURN_IF_ERROR(readWindows(traits.window));
  CORTIQ_RETURN_IF_ERROR(readRope(traits));
  CORTIQ_RETURN_IF_ERROR(readExpertCounts(traits));
  CORTIQ_RETURN_IF_ERROR(readEnds(traits));
  const int64_t trunk = static_cast<int64_t>(model_.layers.size()) - predictors_;
  for (int64_t i = 0; i < trunk; ++i)
    CORTIQ_RETURN_IF_ERROR(readLayer(i, traits));
  return readDraft(traits);
}

} // namespace cortiq::compiler
