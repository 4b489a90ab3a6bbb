#include "tools/cortiq-bench/synthetic/shape.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "formats/checked_math.h"
#include "formats/layout/layout.h"
#include "formats/quote.h"
#include "tools/cortiq-bench/synthetic/low_rank.h"

namespace cortiq::bench {
namespace {

using formats::quote;

struct NamedShape {
  std::string_view name, alias;
  uint64_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
  bool tied;
  uint64_t experts, used, expert_ffn;
};

constexpr NamedShape kShapes[] = {
    {"tiny", "", 2, 256, 512, 4, 2, 64, 512, true, 0, 0, 0},
    {"tiny-moe", "", 2, 256, 512, 4, 2, 64, 512, false, 8, 2, 256},
    {"smollm2-135m", "135m", 30, 576, 1536, 9, 3, 64, 49152, true, 0, 0, 0},
    {"llama-3.2-1b", "1b", 16, 2048, 8192, 32, 8, 64, 128256, true, 0, 0, 0},
    {"llama-3.2-3b", "3b", 28, 3072, 8192, 24, 8, 128, 128256, true, 0, 0, 0},
    {"llama-3.1-8b", "8b", 32, 4096, 14336, 32, 8, 128, 128256, false, 0, 0, 0},
    {"qwen3-30b-a3b", "30b-a3b", 48, 2048, 6144, 32, 4, 128, 151936, false, 128, 8, 768},
};

struct SizeKey {
  std::string_view key;
  uint64_t SyntheticShape::* field;
  uint64_t most;
};

constexpr SizeKey kSizes[] = {
    {"layers", &SyntheticShape::layers, 4096},
    {"hidden", &SyntheticShape::hidden, 1 << 20},
    {"ffn", &SyntheticShape::ffn, 1 << 20},
    {"heads", &SyntheticShape::heads, 4096},
    {"kv-heads", &SyntheticShape::kv_heads, 4096},
    {"head-dim", &SyntheticShape::head_dim, 1 << 14},
    {"vocab", &SyntheticShape::vocab, 1 << 22},
    {"context", &SyntheticShape::context, 1 << 24},
    {"experts", &SyntheticShape::experts, 65536},
    {"used", &SyntheticShape::used, 65536},
    {"expert-ffn", &SyntheticShape::expert_ffn, 1 << 20},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t comma = text.find(',');
    out.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos)
      return out;
    text.remove_prefix(comma + 1);
  }
}

/// KEY=VALUE; an empty key where there is none.
std::pair<std::string_view, std::string_view> key_and_value(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos)
    return {{}, word};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

StatusOr<SyntheticShape> named(std::string_view name) {
  for (const NamedShape& s : kShapes)
    if (lower(name) == s.name || (!s.alias.empty() && lower(name) == s.alias))
      return SyntheticShape{std::string(s.name), s.layers,   s.hidden,    s.ffn, s.heads,
                            s.kv_heads,          s.head_dim, s.vocab,     32768, s.tied,
                            s.experts,           s.used,     s.expert_ffn};
  std::string list;
  for (const NamedShape& s : kShapes)
    list += (list.empty() ? "" : ", ") + std::string(s.alias.empty() ? s.name : s.alias);
  return invalid("--synthetic knows no shape " + quote(name) + "; there are " + list + ", and sizes as in layers=4");
}

Status set_size(SyntheticShape& shape, std::string_view key, std::string_view text) {
  for (const SizeKey& size : kSizes) {
    if (size.key != key)
      continue;
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > size.most)
      return invalid("--synthetic: " + std::string(key) + " is a number from 1 to " + std::to_string(size.most) +
                     ", not " + quote(text));
    shape.*size.field = value;
    return {};
  }
  std::string list;
  for (const SizeKey& size : kSizes)
    list += (list.empty() ? "" : ", ") + std::string(size.key);
  return invalid("--synthetic knows no size " + quote(key) + "; there are " + list);
}

StatusOr<SyntheticShape> parse_shape(std::string_view text) {
  SyntheticShape shape;
  std::string sizes;
  const std::vector<std::string_view> words = split(text);
  for (size_t i = 0; i < words.size(); ++i) {
    const auto [key, value] = key_and_value(words[i]);
    if (key.empty() && i == 0) {
      CORTIQ_ASSIGN_OR_RETURN(shape, named(value));
      continue;
    }
    CORTIQ_RETURN_IF_ERROR(set_size(shape, key, value));
    sizes += (sizes.empty() ? "" : ",") + std::string(words[i]);
  }
  if (shape.kv_heads == 0)
    shape.kv_heads = shape.heads;
  if (shape.head_dim == 0 && shape.heads != 0)
    shape.head_dim = shape.hidden / shape.heads;
  if (shape.expert_ffn == 0)
    shape.expert_ffn = shape.ffn;
  if (shape.used == 0)
    shape.used = std::min<uint64_t>(shape.experts, 8);
  shape.name += (shape.name.empty() || sizes.empty() ? "" : ",") + sizes;
  for (const uint64_t size : {shape.layers, shape.hidden, shape.ffn, shape.heads, shape.head_dim, shape.vocab})
    if (size == 0)
      return invalid("--synthetic: sizes without a named shape are at least layers, hidden, ffn, heads and vocab");
  if (shape.heads % shape.kv_heads != 0)
    return invalid("--synthetic: " + std::to_string(shape.heads) + " heads do not share " +
                   std::to_string(shape.kv_heads) + " key/value heads evenly");
  if (shape.head_dim % 2 != 0)
    return invalid("--synthetic: a head of " + std::to_string(shape.head_dim) + " is not made of pairs to rotate");
  if (shape.used > shape.experts)
    return invalid("--synthetic: " + std::to_string(shape.used) + " experts a token are more than " +
                   std::to_string(shape.experts));
  return shape;
}

StatusOr<const formats::Codec*> find_codec(std::string_view name) {
  const formats::Codec* codec = formats::find_cli_codec(name);
  if (!codec)
    codec = formats::find_codec(lower(name));
  if (!codec || codec->form == formats::DotForm::kNone)
    return invalid("--synthetic knows no codec " + quote(name) + "; cortiq-inspect --codecs lists them");
  return codec;
}

/// The codec in the other tensors' container, or why not.
Status check_container(const formats::Codec& codec, bool cmf) {
  if ((cmf ? codec.cmf_code : codec.gguf_code) < 0)
    return invalid("--synthetic: no " + std::string(cmf ? "CMF" : "GGUF") + " model has tensors of " +
                   std::string(codec.name));
  return {};
}

/// What embedding and head come in where nobody says: as converters write them.
formats::CodecId head_of(const formats::Codec& codec, bool cmf, uint64_t hidden) {
  using formats::CodecId;
  if (cmf)
    return codec.form == formats::DotForm::kFloat && !codec.variable_size ? codec.id : CodecId::kQ8Row;
  if (codec.form == formats::DotForm::kFloat)
    return codec.id;
  return codec.id == CodecId::kQ8_0 || codec.id == CodecId::kMXFP4_GGML || hidden % 256 != 0 ? CodecId::kQ8_0
                                                                                             : CodecId::kQ6_K;
}

/// Adds tensors under the names of one container.
class Names {
public:
  Names(const SyntheticSpec& spec, std::vector<SyntheticTensor>& out) : spec_(spec), out_(out) {}

  void matrix(const char* gguf, const char* cmf, const formats::Codec* codec, uint64_t rows, uint64_t cols) {
    out_.push_back({name(gguf, cmf), codec, {rows, cols}});
  }
  void norm(const char* gguf, const char* cmf, uint64_t size) {
    out_.push_back({name(gguf, cmf), &formats::codec_info(formats::CodecId::kF32), {size}, true});
  }
  /// One matrix of every expert: stacked in GGUF, each by itself in CMF.
  void experts(const char* gguf, const char* cmf, uint64_t rows, uint64_t cols) {
    if (!spec_.cmf) {
      out_.push_back({name(gguf, cmf), spec_.codec, {spec_.shape.experts, rows, cols}});
      return;
    }
    for (uint64_t e = 0; e < spec_.shape.experts; ++e)
      out_.push_back({prefix + "mlp.experts." + std::to_string(e) + "." + cmf + ".weight", spec_.codec, {rows, cols}});
  }
  std::string prefix; ///< of the layer

private:
  std::string name(const char* gguf, const char* cmf) const { return prefix + (spec_.cmf ? cmf : gguf) + ".weight"; }
  const SyntheticSpec& spec_;
  std::vector<SyntheticTensor>& out_;
};

} // namespace

std::string SyntheticSpec::title() const {
  std::string out = shape.name + " " + std::string(codec->name);
  if (attention != codec)
    out += ", attention " + std::string(attention->name);
  return out;
}

StatusOr<SyntheticSpec> parse_synthetic(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos)
    return invalid("--synthetic is SHAPE:CODEC as in 3b:q4_0, not " + quote(text));
  SyntheticSpec spec;
  CORTIQ_ASSIGN_OR_RETURN(spec.shape, parse_shape(std::string_view(text).substr(0, colon)));
  const std::vector<std::string_view> words = split(std::string_view(text).substr(colon + 1));
  CORTIQ_ASSIGN_OR_RETURN(spec.codec, find_codec(words[0]));
  spec.cmf = words[0].substr(0, 4) == "cmf:" || spec.codec->gguf_code < 0;
  CORTIQ_RETURN_IF_ERROR(check_container(*spec.codec, spec.cmf));
  spec.attention = spec.codec;
  spec.head = &formats::codec_info(head_of(*spec.codec, spec.cmf, spec.shape.hidden));
  for (size_t i = 1; i < words.size(); ++i) {
    const auto [key, value] = key_and_value(words[i]);
    if (key != "attention" && key != "head")
      return invalid("--synthetic: behind the codec come attention=CODEC and head=CODEC, not " + quote(words[i]));
    CORTIQ_ASSIGN_OR_RETURN(const formats::Codec* codec, find_codec(value));
    CORTIQ_RETURN_IF_ERROR(check_container(*codec, spec.cmf));
    (key == "head" ? spec.head : spec.attention) = codec;
  }
  for (const SyntheticTensor& tensor : synthetic_tensors(spec))
    CORTIQ_RETURN_IF_ERROR(tensor.bytes().status());
  return spec;
}

std::string named_shapes() {
  std::string out;
  for (const NamedShape& s : kShapes) {
    out += (out.empty() ? "" : ", ") + std::string(s.name);
    if (!s.alias.empty())
      out += " (" + std::string(s.alias) + ")";
  }
  return out;
}

uint64_t SyntheticTensor::rows() const {
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows;
}

StatusOr<uint64_t> SyntheticTensor::bytes() const {
  const StatusOr<uint64_t> bytes = codec->id == formats::CodecId::kBLR ? low_rank_bytes(rows(), cols())
                                   : codec->variable_size
                                       ? formats::packed_bytes(*codec, formats::LayoutId::kVerbatim, rows(), cols())
                                       : codec->payload_bytes(*codec, rows(), cols());
  return bytes.ok() ? bytes : bytes.status().with_prefix("--synthetic: " + name);
}

std::vector<SyntheticTensor> synthetic_tensors(const SyntheticSpec& spec) {
  const SyntheticShape& s = spec.shape;
  const uint64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  const formats::Codec* plain = &formats::codec_info(formats::CodecId::kF32);
  std::vector<SyntheticTensor> out;
  Names names(spec, out);
  names.prefix = spec.cmf ? "model." : "";
  names.matrix("token_embd", "embed_tokens", spec.head, s.vocab, s.hidden);
  names.norm("output_norm", "norm", s.hidden);
  if (!s.tied) {
    names.prefix.clear();
    names.matrix("output", "lm_head", spec.head, s.vocab, s.hidden);
  }
  for (uint64_t i = 0; i < s.layers; ++i) {
    names.prefix = (spec.cmf ? "model.layers." : "blk.") + std::to_string(i) + ".";
    names.norm("attn_norm", "input_layernorm", s.hidden);
    names.matrix("attn_q", "self_attn.q_proj", spec.attention, q, s.hidden);
    names.matrix("attn_k", "self_attn.k_proj", spec.attention, kv, s.hidden);
    names.matrix("attn_v", "self_attn.v_proj", spec.attention, kv, s.hidden);
    names.matrix("attn_output", "self_attn.o_proj", spec.attention, s.hidden, q);
    names.norm("ffn_norm", "post_attention_layernorm", s.hidden);
    if (!s.moe()) {
      names.matrix("ffn_gate", "mlp.gate_proj", spec.codec, s.ffn, s.hidden);
      names.matrix("ffn_up", "mlp.up_proj", spec.codec, s.ffn, s.hidden);
      names.matrix("ffn_down", "mlp.down_proj", spec.codec, s.hidden, s.ffn);
      continue;
    }
    names.norm("attn_q_norm", "self_attn.q_norm", s.head_dim);
    names.norm("attn_k_norm", "self_attn.k_norm", s.head_dim);
    names.matrix("ffn_gate_inp", "mlp.gate", plain, s.experts, s.hidden);
    names.experts("ffn_gate_exps", "gate_proj", s.expert_ffn, s.hidden);
    names.experts("ffn_up_exps", "up_proj", s.expert_ffn, s.hidden);
    names.experts("ffn_down_exps", "down_proj", s.hidden, s.expert_ffn);
  }
  return out;
}

} // namespace cortiq::bench
