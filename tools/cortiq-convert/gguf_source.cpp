#include "tools/cortiq-convert/gguf_source.h"

#include <algorithm>
#include <set>

#include "formats/quote.h"
#include "runtime/text/text_source.h"
#include "tools/cortiq-convert/gguf_arch.h"
#include "tools/cortiq-convert/gguf_header.h"
#include "tools/cortiq-convert/text_bundle.h"

namespace cortiq::convert {

using formats::GgufFile;
using formats::Json;
using formats::quote;
using formats::Tensor;

namespace {

/// A tensor of a block: its stem in the file and in CMF.
struct Part {
  std::string_view file, canonical;
};

constexpr Part kBlockWeights[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};

constexpr Part kHeadNorms[] = {
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
};

class GgufConverter {
public:
  GgufConverter(const GgufFile& file, const GgufArch& arch, const GgufSizes& sizes)
      : file_(file), arch_(arch), sizes_(sizes) {}

  Status add_tensors() {
    CORTIQ_RETURN_IF_ERROR(add("token_embd.weight", "model.embed_tokens.weight", {sizes_.vocab, sizes_.hidden}));
    for (uint64_t layer = 0; layer < sizes_.layers; ++layer)
      CORTIQ_RETURN_IF_ERROR(add_layer(layer));
    CORTIQ_RETURN_IF_ERROR(add("output_norm.weight", "model.norm.weight", {sizes_.hidden}));
    if (file_.find("output.weight"))
      CORTIQ_RETURN_IF_ERROR(add("output.weight", "lm_head.weight", {sizes_.vocab, sizes_.hidden}));
    return check_all_used();
  }

  std::vector<SourceTensor> take_tensors() { return std::move(tensors_); }

private:
  Status add_layer(uint64_t layer) {
    const auto shape = [&](std::string_view stem) -> std::vector<uint64_t> {
      const uint64_t width = sizes_.feed_forward[layer];
      if (stem == "attn_output.weight")
        return {sizes_.hidden, sizes_.heads[layer] * sizes_.value_length};
      if (stem == "ffn_down.weight")
        return {sizes_.hidden, width};
      if (stem == "ffn_gate.weight" || stem == "ffn_up.weight")
        return {width, sizes_.hidden};
      return {sizes_.hidden};
    };
    CORTIQ_RETURN_IF_ERROR(add_attention(layer));
    for (const Part& part : kBlockWeights)
      CORTIQ_RETURN_IF_ERROR(add(block(layer, part.file), layer_name(layer, part.canonical), shape(part.file)));
    if (arch_.head_norms)
      for (const Part& part : kHeadNorms)
        CORTIQ_RETURN_IF_ERROR(add(block(layer, part.file), layer_name(layer, part.canonical), {sizes_.key_length}));
    return {};
  }

  Status add_attention(uint64_t layer) {
    struct Projection {
      const char* file;
      const char* canonical;
      uint64_t rows;
      bool rotated;
    };
    const Projection projections[] = {
        {"attn_q", "q_proj", sizes_.heads[layer] * sizes_.key_length, true},
        {"attn_k", "k_proj", sizes_.kv_heads[layer] * sizes_.key_length, true},
        {"attn_v", "v_proj", sizes_.kv_heads[layer] * sizes_.value_length, false},
    };
    const bool fused = file_.find(block(layer, "attn_qkv.weight")) != nullptr;
    uint64_t all = 0, first = 0;
    for (const Projection& p : projections)
      all += p.rows;
    for (const Projection& p : projections) {
      const std::string stem = block(layer, fused ? "attn_qkv" : p.file);
      const std::string canonical = layer_name(layer, std::string("self_attn.") + p.canonical);
      const Slice slice{.first = fused ? first : 0,
                        .file_rows = fused ? all : p.rows,
                        .head = p.rotated && arch_.neighbours ? sizes_.key_length : 0};
      CORTIQ_RETURN_IF_ERROR(add_slice(stem + ".weight", canonical + ".weight", {p.rows, sizes_.hidden}, slice));
      if (file_.find(stem + ".bias"))
        CORTIQ_RETURN_IF_ERROR(add_slice(stem + ".bias", canonical + ".bias", {p.rows}, slice));
      first += p.rows;
    }
    return check_biases(layer);
  }

  /// CMF uses the three biases together or not at all (3.1).
  Status check_biases(uint64_t layer) const {
    int found = 0;
    for (const char* stem : {"q_proj", "k_proj", "v_proj"})
      found += names_.contains(layer_name(layer, std::string("self_attn.") + stem + ".bias"));
    if (found == 0 || found == 3)
      return {};
    return unsupported("layer " + std::to_string(layer) +
                       " has biases on some of queries, keys and values but not on all, which CMF cannot hold");
  }

  struct Slice {
    uint64_t first = 0, file_rows = 0, head = 0;
  };

  Status add(const std::string& name, std::string canonical, std::vector<uint64_t> shape) {
    return add_slice(name, std::move(canonical), shape, {.file_rows = shape[0]});
  }

  Status add_slice(const std::string& name, std::string canonical, std::vector<uint64_t> shape, const Slice& slice) {
    const Tensor* tensor = file_.find(name);
    if (!tensor)
      return invalid("tensor " + quote(name) + " is missing");
    std::vector<uint64_t> expected = shape;
    expected[0] = slice.file_rows;
    if (tensor->shape != expected)
      return invalid("tensor " + quote(name) + " has shape " + formats::shape_text(tensor->shape) + ", expected " +
                     formats::shape_text(expected));
    CORTIQ_RETURN_IF_ERROR(formats::weight_codec(*tensor).status());
    used_.insert(tensor);
    names_.insert(canonical);
    tensors_.push_back({std::move(canonical), std::move(shape), tensor, slice.first, slice.head});
    return {};
  }

  /// Whatever is left would change what the model computes; CMF has no place for it.
  Status check_all_used() const {
    for (const Tensor& tensor : file_.tensors()) {
      const std::string_view name = tensor.name;
      if (used_.contains(&tensor) || name == "rope_freqs.weight" || name.ends_with(".attn_rot_embd.weight"))
        continue;
      return unsupported("tensor " + quote(name) + " has no place in a CMF file of architecture " + quote(arch_.name));
    }
    return {};
  }

  static std::string block(uint64_t layer, std::string_view stem) {
    return "blk." + std::to_string(layer) + "." + std::string(stem);
  }

  const GgufFile& file_;
  const GgufArch& arch_;
  const GgufSizes& sizes_;
  std::vector<SourceTensor> tensors_;
  std::set<const Tensor*> used_;
  std::set<std::string> names_;
};

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
  const GgufArch* arch = find_gguf_arch(architecture);
  if (!arch)
    return unsupported("architecture " + quote(architecture) + " cannot be converted; known are " +
                       std::string(gguf_arch_names()));
  CORTIQ_ASSIGN_OR_RETURN(const GgufHeader header, read_gguf_header(file, *arch));
  model.arch = header.arch;
  GgufConverter converter(file, *arch, header.sizes);
  CORTIQ_RETURN_IF_ERROR(converter.add_tensors());
  model.tensors = converter.take_tensors();
  return {};
}

} // namespace

StatusOr<SourceModel> read_gguf_model(const GgufFile& file) {
  CORTIQ_RETURN_IF_ERROR(file.check_model());
  SourceModel model;
  model.format = "GGUF";
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view name, file.get_string_or("general.name", ""));
  model.name = formats::is_utf8(name) ? std::string(name) : "";
  for (size_t i = 0; i < file.file_count(); ++i)
    model.bytes += file.file_bytes(i).size();
  CORTIQ_RETURN_IF_ERROR(read_model(file, model).with_prefix(quote(file.path())));
  CORTIQ_RETURN_IF_ERROR(read_text(file, model));
  return model;
}

} // namespace cortiq::convert
