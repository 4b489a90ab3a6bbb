#include "tools/cortiq-convert/gguf_source.h"

#include <span>

#include "formats/quote.h"
#include "runtime/text/text_source.h"
#include "tools/cortiq-convert/gguf_arch.h"
#include "tools/cortiq-convert/gguf_header.h"
#include "tools/cortiq-convert/gguf_tensors.h"
#include "tools/cortiq-convert/text_bundle.h"

namespace cortiq::convert {

using formats::GgufFile;
using formats::quote;
using formats::Tensor;

namespace {

/// A norm of a layer: its stem in the file and in CMF.
struct Norm {
  std::string_view file, canonical;
};

constexpr Norm kPlainNorms[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
};

constexpr Norm kRenamedNorms[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
};

constexpr Norm kSandwichNorms[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight"},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
};

std::span<const Norm> norms_of(const GgufArch& arch) {
  switch (arch.norms) {
  case GgufNorms::kPlain:
    return kPlainNorms;
  case GgufNorms::kRenamed:
    return kRenamedNorms;
  case GgufNorms::kSandwich:
    return kSandwichNorms;
  }
}

/// Whatever is left would change what the model computes; CMF has no place for it.
Status check_all_used(const GgufFile& file, const GgufTensors& tensors) {
  const GgufSizes& sizes = tensors.sizes;
  for (const Tensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    const bool frequencies = name == "rope_freqs.weight" || name.starts_with("rope_factors_");
    if (tensors.used(tensor) || frequencies || name.ends_with(".attn_rot_embd.weight"))
      continue;
    bool predicts = false;
    for (uint64_t i = 0; i < sizes.predictors; ++i)
      predicts = predicts || name.starts_with(gguf_block(sizes.layers + i, ""));
    if (!predicts)
      return unsupported("tensor " + quote(name) + " has no place in a CMF file of architecture " +
                         quote(tensors.arch.name));
  }
  return {};
}

Status add_mixer(GgufTensors& tensors, uint64_t layer) {
  switch (tensors.sizes.kinds[layer]) {
  case LayerKind::kAttention:
  case LayerKind::kWindow:
    return tensors.arch.mixer == GgufMixer::kLatent ? add_gguf_latent(tensors, layer)
                                                    : add_gguf_attention(tensors, layer);
  case LayerKind::kShortConv:
    return add_gguf_short_conv(tensors, layer);
  case LayerKind::kGatedDelta:
    return add_gguf_delta(tensors, layer);
  }
}

Status add_tensors(const GgufFile& file, GgufTensors& tensors) {
  const GgufSizes& sizes = tensors.sizes;
  CORTIQ_RETURN_IF_ERROR(
      tensors.add("token_embd.weight", "model.embed_tokens.weight", {sizes.vocab, sizes.hidden}).status());
  for (uint64_t layer = 0; layer < sizes.layers; ++layer) {
    CORTIQ_RETURN_IF_ERROR(add_mixer(tensors, layer));
    for (const Norm& norm : norms_of(tensors.arch))
      CORTIQ_RETURN_IF_ERROR(
          tensors.add(gguf_block(layer, norm.file), layer_name(layer, norm.canonical), {sizes.hidden}).status());
    CORTIQ_RETURN_IF_ERROR(add_gguf_feed_forward(tensors, layer));
  }
  CORTIQ_RETURN_IF_ERROR(
      tensors.add(std::string(tensors.arch.final_norm), "model.norm.weight", {sizes.hidden}).status());
  if (tensors.has("output.weight"))
    CORTIQ_RETURN_IF_ERROR(tensors.add("output.weight", "lm_head.weight", {sizes.vocab, sizes.hidden}).status());
  return check_all_used(file, tensors);
}

/// Files without any tokenizer are converted without one; one that is there has to be understood.
Status read_text(const GgufFile& file, SourceModel& model) {
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view kind, file.get_string_or("tokenizer.ggml.model", "none"));
  if ((kind == "none" || kind == "no_vocab") && !file.has("tokenizer.huggingface.json")) {
    model.warnings.push_back(quote(file.path()) + " has no tokenizer, so neither has the result");
    return {};
  }
  CORTIQ_ASSIGN_OR_RETURN(runtime::text::TextSource text, runtime::text::read_text_source(file));
  model.tokenizer_json = std::move(text.tokenizer_json);
  model.tokenizer_config = text_bundle(text.config);
  model.warnings.insert(model.warnings.end(), text.warnings.begin(), text.warnings.end());
  if (!text.config.suppress_ids.empty())
    model.warnings.push_back(quote(file.path()) + ": the list of tokens never to be sampled (tokenizer.ggml."
                                                  "suppress_tokens) is left out, CMF has no field for it");
  return {};
}

Status read_model(const GgufFile& file, SourceModel& model) {
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view architecture, file.architecture());
  if (const std::string_view why = no_cmf_form(architecture); !why.empty())
    return unsupported("a model of architecture " + quote(architecture) + " has no form in CMF: " + std::string(why));
  const GgufArch* arch = find_gguf_arch(architecture);
  if (!arch)
    return unsupported("architecture " + quote(architecture) + " cannot be converted; known are " + gguf_arch_names());
  CORTIQ_ASSIGN_OR_RETURN(GgufHeader header, read_gguf_header(file, *arch));
  GgufTensors tensors(file, *arch, header.sizes);
  CORTIQ_RETURN_IF_ERROR(add_tensors(file, tensors));
  model.arch = std::move(header.arch);
  model.tensors = tensors.release();
  for (const std::string& warning : header.warnings)
    model.warnings.push_back(quote(file.path()) + ": " + warning);
  return {};
}

} // namespace

std::string gguf_block(uint64_t layer, std::string_view stem) {
  return "blk." + std::to_string(layer) + "." + std::string(stem);
}

StatusOr<SourceModel> read_gguf_model(const GgufFile& file) {
  CORTIQ_RETURN_IF_ERROR(file.check_model());
  SourceModel model;
  model.format = "GGUF";
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view name, file.get_string_or("general.name", ""));
  model.name = formats::is_utf8(name) ? std::string(name) : "";
  for (size_t i = 0; i < file.file_count(); ++i)
    model.bytes += file.file_bytes(i).size();
  // What the metadata's reader says names the file already.
  const std::string path = quote(file.path());
  if (const Status status = read_model(file, model); !status.ok())
    return status.message().starts_with(path + ": ") ? status : status.with_prefix(path);
  CORTIQ_RETURN_IF_ERROR(read_text(file, model));
  return model;
}

} // namespace cortiq::convert
