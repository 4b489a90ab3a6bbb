// One function a kind builds the parts of the tokenizer.json that differ; the rest is shared.

#include "runtime/text/gguf_tokenizer.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "formats/quote.h"
#include "runtime/text/gguf_pretokenizers.h"
#include "runtime/text/gguf_vocabulary.h"
#include "runtime/text/json_text.h"

namespace cortiq::runtime::text {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kWordMark = "\u2581";

/// The parts of a tokenizer.json, as JSON texts except where small.
struct Parts {
  Json normalizer, pre_tokenizer, post_processor, decoder;
  std::string model;
  std::vector<std::string> model_texts; ///< what the model calls each token
  uint32_t model_size = 0;              ///< ids from here on are added tokens only
};

struct Kind {
  std::string_view name;
  GgufKindDefaults defaults;
  Status (*build)(const GgufTokenizerData& data, GgufVocabulary& vocabulary, Parts& parts,
                  std::vector<std::string>& warnings);
};

Json replace(const Json& pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}

Json sequence(const char* key, Json parts) {
  return {{"type", "Sequence"}, {key, std::move(parts)}};
}

Json split(std::string_view expression) {
  return {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
}

/// What stands around a text: `before`, the text, `after`.
Json frame(const GgufVocabulary& vocabulary, std::optional<uint32_t> before, std::optional<uint32_t> after) {
  if (!before && !after)
    return nullptr;
  Json single = Json::array(), special = Json::object();
  auto add = [&](std::optional<uint32_t> id) {
    if (!id)
      return;
    const std::string& text = vocabulary.texts[*id];
    single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
    special[text] = {{"id", text}, {"ids", Json::array({*id})}, {"tokens", Json::array({text})}};
  };
  add(before);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  add(after);
  Json pair = single;
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
}

Json usual_frame(const GgufVocabulary& vocabulary) {
  std::optional<uint32_t> after = vocabulary.add_sep ? vocabulary.sep : std::nullopt;
  if (vocabulary.add_eos)
    after = vocabulary.eos;
  return frame(vocabulary, vocabulary.add_bos ? vocabulary.bos : std::nullopt, after);
}

struct Merge {
  std::string_view left, right;
};

struct BpeFlags {
  bool byte_fallback = false;
  bool ignore_merges = false;
  std::optional<uint32_t> unk;
};

void write_bpe(const GgufVocabulary& vocabulary, const std::vector<Merge>& merges, const BpeFlags& flags,
               Parts& parts) {
  std::string& out = parts.model;
  auto flag = [](bool value) { return value ? "true" : "false"; };
  out = R"({"type":"BPE","dropout":null,"unk_token":)";
  if (flags.unk)
    append_json_string(out, vocabulary.texts[*flags.unk]);
  else
    out += "null";
  out += R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":)";
  out += flag(flags.unk.has_value());
  out += R"(,"byte_fallback":)";
  out += flag(flags.byte_fallback);
  out += R"(,"ignore_merges":)";
  out += flag(flags.ignore_merges);
  out += R"(,"vocab":{)";
  for (uint32_t id = 0; id < parts.model_size; ++id) {
    if (id > 0)
      out += ',';
    append_json_string(out, vocabulary.texts[id]);
    out += ':';
    out += std::to_string(id);
  }
  out += R"(},"merges":[)";
  bool first = true;
  for (const Merge& merge : merges) {
    out += first ? "[" : ",[";
    first = false;
    append_json_string(out, merge.left);
    out += ',';
    append_json_string(out, merge.right);
    out += ']';
  }
  out += "]}";
}

/// Entries that only matching whole texts can give stay out of the model when they are the last ones, so that a piece
/// equal to a special token's text is not taken for it.
uint32_t model_size_without_added(const GgufVocabulary& vocabulary) {
  auto size = static_cast<uint32_t>(vocabulary.size());
  while (size > 0 && (vocabulary.is_special(size - 1) || vocabulary.types[size - 1] == GgufTokenType::kUserDefined))
    --size;
  return size;
}

StatusOr<std::vector<Merge>> read_merges(const GgufTokenizerData& data, const GgufVocabulary& vocabulary,
                                         uint32_t model_size, std::vector<std::string>& warnings) {
  std::vector<Merge> merges;
  merges.reserve(data.merges->size());
  size_t useless = 0;
  std::string joined;
  auto in_model = [&](std::string_view text) {
    auto id = vocabulary.find(text);
    return id && *id < model_size;
  };
  for (size_t rank = 0; rank < data.merges->size(); ++rank) {
    std::string_view line = (*data.merges)[rank];
    // A piece may itself be a space, so the cut is never at the first character.
    size_t cut = line.find(' ', 1);
    if (line.empty() || cut == std::string_view::npos || !formats::is_utf8(line))
      return invalid("tokenizer.ggml.merges: entry " + std::to_string(rank) +
                     " is not two pieces with a space between");
    Merge merge{line.substr(0, cut), line.substr(cut + 1)};
    joined.assign(merge.left).append(merge.right);
    if (in_model(merge.left) && in_model(merge.right) && in_model(joined))
      merges.push_back(merge);
    else
      ++useless;
  }
  if (useless > 0)
    warnings.push_back("tokenizer.ggml.merges: " + std::to_string(useless) +
                       " entries name pieces that are no tokens; they are ignored");
  return merges;
}

/// Every cut of every entry into two entries, in the order of `rank` of the whole (smaller first).
template <class Rank>
std::vector<Merge> derive_merges(const GgufVocabulary& vocabulary, uint32_t model_size, Rank rank) {
  auto mergeable = [&](uint32_t id) {
    GgufTokenType type = vocabulary.types[id];
    return id < model_size && (type == GgufTokenType::kNormal || type == GgufTokenType::kUserDefined);
  };
  std::vector<uint32_t> order;
  for (uint32_t id = 0; id < model_size; ++id)
    if (mergeable(id))
      order.push_back(id);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return rank(a) != rank(b) ? rank(a) < rank(b) : a < b; });
  std::vector<Merge> merges;
  std::vector<std::array<uint32_t, 2>> cuts;
  for (uint32_t id : order) {
    std::string_view text = vocabulary.texts[id];
    cuts.clear();
    for (size_t at = 1; at < text.size(); ++at) {
      if ((static_cast<uint8_t>(text[at]) & 0xc0) == 0x80)
        continue;
      auto left = vocabulary.find(text.substr(0, at)), right = vocabulary.find(text.substr(at));
      if (left && right && mergeable(*left) && mergeable(*right))
        cuts.push_back({*left, *right});
    }
    std::sort(cuts.begin(), cuts.end());
    for (const auto& cut : cuts)
      merges.push_back({vocabulary.texts[cut[0]], vocabulary.texts[cut[1]]});
  }
  return merges;
}

Json byte_level(bool trim) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", trim}, {"use_regex", false}};
}

Json word_mark_decoder(bool strip) {
  Json steps = {replace({{"String", kWordMark}}, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (strip)
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return sequence("decoders", std::move(steps));
}

Status build_bpe(const GgufTokenizerData& data, GgufVocabulary& vocabulary, const GgufPreTokenizer& pre, Parts& parts,
                 std::vector<std::string>& warnings) {
  parts.model_size = model_size_without_added(vocabulary);
  std::vector<Merge> merges;
  if (data.merges) {
    CORTIQ_ASSIGN_OR_RETURN(merges, read_merges(data, vocabulary, parts.model_size, warnings));
  } else if (pre.name == "kimi-k2") {
    // Such files may leave the merges out: a pair's rank is the id of what it makes.
    merges = derive_merges(vocabulary, parts.model_size, [](uint32_t id) { return id; });
  } else {
    return invalid("tokenizer.ggml.merges is missing, which tokenizers of kind " + formats::quote(data.model) +
                   " need");
  }
  BpeFlags flags;
  flags.ignore_merges = pre.has(GgufPreTokenizer::kIgnoreMerges);
  flags.byte_fallback = pre.has(GgufPreTokenizer::kRaw);
  write_bpe(vocabulary, merges, flags, parts);
  if (pre.has(GgufPreTokenizer::kNfc))
    parts.normalizer = {{"type", "NFC"}};
  Json steps = Json::array();
  for (std::string_view expression : pre.expressions)
    steps.push_back(split(expression));
  if (pre.has(GgufPreTokenizer::kRaw)) {
    parts.normalizer = replace({{"String", " "}}, kWordMark);
    parts.decoder = word_mark_decoder(false);
  } else {
    steps.push_back(byte_level(true));
    parts.decoder = byte_level(true);
  }
  parts.pre_tokenizer = sequence("pretokenizers", std::move(steps));
  parts.post_processor = usual_frame(vocabulary);
  return Status();
}

Status build_gpt2(const GgufTokenizerData& data, GgufVocabulary& vocabulary, Parts& parts,
                  std::vector<std::string>& warnings) {
  if (!data.pre)
    warnings.push_back("tokenizer.ggml.pre is missing, so the default pre-tokenizer is used and quality may suffer");
  const GgufPreTokenizer* pre = find_gguf_pre_tokenizer(data.pre.value_or(""));
  if (pre == nullptr)
    return unsupported("tokenizer.ggml.pre is " + formats::quote(*data.pre) + ", which is not a known pre-tokenizer");
  vocabulary.add_bos = data.add_bos.value_or(pre->has(GgufPreTokenizer::kAddBos));
  vocabulary.add_sep = data.add_sep.value_or(pre->has(GgufPreTokenizer::kAddSep));
  return build_bpe(data, vocabulary, *pre, parts, warnings);
}

Status build_gemma4(const GgufTokenizerData& data, GgufVocabulary& vocabulary, Parts& parts,
                    std::vector<std::string>& warnings) {
  vocabulary.add_bos = true;
  return build_bpe(data, vocabulary, *find_gguf_pre_tokenizer("gemma4"), parts, warnings);
}

Status build_llama(const GgufTokenizerData&, GgufVocabulary& vocabulary, Parts& parts, std::vector<std::string>&) {
  parts.model_size = static_cast<uint32_t>(vocabulary.size());
  std::vector<Merge> merges =
      derive_merges(vocabulary, parts.model_size, [&](uint32_t id) { return -vocabulary.scores[id]; });
  BpeFlags flags;
  flags.byte_fallback = true;
  flags.unk = vocabulary.unk;
  write_bpe(vocabulary, merges, flags, parts);
  Json spaces = replace({{"String", " "}}, kWordMark);
  parts.normalizer = vocabulary.space_prefix
                         ? sequence("normalizers", {{{"type", "Prepend"}, {"prepend", kWordMark}}, spaces})
                         : spaces;
  parts.decoder = word_mark_decoder(vocabulary.space_prefix);
  parts.post_processor = usual_frame(vocabulary);
  return Status();
}

Status build_bert(const GgufTokenizerData& data, GgufVocabulary& vocabulary, Parts& parts, std::vector<std::string>&) {
  if (!vocabulary.unk)
    return invalid("tokenizer.ggml.unknown_token_id is missing, which tokenizers of kind 'bert' need");
  parts.model_size = static_cast<uint32_t>(vocabulary.size());
  parts.model_texts = vocabulary.texts;
  // In the file word-initial pieces carry U+2581 and continuations nothing; published vocabularies mark continuations.
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    std::string& text = parts.model_texts[id];
    if (vocabulary.is_special(id))
      continue;
    if (text.starts_with(kWordMark) && text.size() > std::string_view(kWordMark).size())
      text.erase(0, std::string_view(kWordMark).size());
    else
      text.insert(0, "##");
  }
  std::string& out = parts.model;
  out = R"({"type":"WordPiece","unk_token":)";
  append_json_string(out, vocabulary.texts[*vocabulary.unk]);
  out += R"(,"continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{)";
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (id > 0)
      out += ',';
    append_json_string(out, parts.model_texts[id]);
    out += ':';
    out += std::to_string(id);
  }
  out += "}}";
  parts.normalizer = {{"type", "BertNormalizer"},
                      {"clean_text", true},
                      {"handle_chinese_chars", true},
                      {"strip_accents", data.strip_accents ? Json(*data.strip_accents) : Json(nullptr)},
                      {"lowercase", data.lowercase}};
  parts.pre_tokenizer = {{"type", "BertPreTokenizer"}};
  parts.decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  parts.post_processor = frame(vocabulary, vocabulary.add_bos ? vocabulary.cls : std::nullopt, vocabulary.sep);
  return Status();
}

std::string base64(const std::vector<uint8_t>& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? bytes[at + i] : 0u);
    for (size_t i = 0; i < 4; ++i)
      text += at + i <= bytes.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

Status build_t5(const GgufTokenizerData& data, GgufVocabulary& vocabulary, Parts& parts, std::vector<std::string>&) {
  parts.model_size = static_cast<uint32_t>(vocabulary.size());
  bool bytes = std::count(vocabulary.types.begin(), vocabulary.types.end(), GgufTokenType::kByte) == 256;
  std::string& out = parts.model;
  out = R"({"type":"Unigram","unk_id":)";
  out += vocabulary.unk ? std::to_string(*vocabulary.unk) : "null";
  out += bytes ? R"(,"byte_fallback":true,"vocab":[)" : R"(,"byte_fallback":false,"vocab":[)";
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    out += id > 0 ? ",[" : "[";
    append_json_string(out, vocabulary.texts[id]);
    out += ',';
    out += Json(vocabulary.scores[id]).dump();
    out += ']';
  }
  out += "]}";
  Json steps = Json::array();
  if (!data.precompiled_charsmap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64(data.precompiled_charsmap)}});
  if (data.remove_extra_whitespaces) {
    steps.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
    steps.push_back(replace({{"Regex", " {2,}"}}, kWordMark));
  }
  if (!steps.empty())
    parts.normalizer = sequence("normalizers", std::move(steps));
  Json metaspace = {{"type", "Metaspace"},
                    {"replacement", kWordMark},
                    {"prepend_scheme", vocabulary.space_prefix ? "always" : "never"},
                    {"split", true}};
  parts.pre_tokenizer = metaspace;
  parts.decoder = bytes ? sequence("decoders", {{{"type", "ByteFallback"}}, metaspace}) : metaspace;
  parts.post_processor = usual_frame(vocabulary);
  return Status();
}

// bos, eos, unk, sep, pad, mask; add BOS, add EOS, space before the text. gpt2's customary id 11 for BOS and EOS is a
// leftover of one model and would end others at a plain word, so none stands here.
const Kind kKinds[] = {
    {"bert", {101, -1, 100, 102, 0, 103, true, false, false}, build_bert},
    {"gemma4", {-1, -1, -1, -1, -1, -1, true, false, false}, build_gemma4},
    {"gpt2", {-1, -1, -1, -1, -1, -1, false, false, false}, build_gpt2},
    {"llama", {1, 2, 0, -1, -1, -1, true, false, true}, build_llama},
    {"t5", {-1, 1, 2, -1, 0, -1, false, true, true}, build_t5},
};

std::string added_tokens(const GgufVocabulary& vocabulary, const Parts& parts, const GgufTokenizerData& data) {
  // Files of this model expect white space right of special tokens to vanish; GGUF has no field for it.
  bool strip = data.general_name.find("phi-3") != std::string_view::npos ||
               data.general_name.find("phi3") != std::string_view::npos;
  std::string out = "[";
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    bool special = vocabulary.is_special(id);
    if (!special && vocabulary.types[id] != GgufTokenType::kUserDefined && id < parts.model_size)
      continue;
    out += out.size() > 1 ? R"(,{"id":)" : R"({"id":)";
    out += std::to_string(id);
    out += R"(,"content":)";
    append_json_string(out, parts.model_texts.empty() ? vocabulary.texts[id] : parts.model_texts[id]);
    out += R"(,"single_word":false,"lstrip":false,"rstrip":)";
    out += strip && special ? "true" : "false";
    out += R"(,"normalized":false,"special":)";
    out += special ? "true}" : "false}";
  }
  return out + "]";
}

std::vector<uint32_t> bounded_ids(const std::vector<int64_t>& stated, size_t count) {
  std::vector<uint32_t> ids;
  for (int64_t id : stated)
    if (id >= 0 && static_cast<uint64_t>(id) < count)
      ids.push_back(static_cast<uint32_t>(id));
  return ids;
}

} // namespace

StatusOr<ConvertedTokenizer> convert_gguf_tokenizer(const GgufTokenizerData& data) {
  const Kind* kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.name == data.model; });
  if (data.model.empty())
    return invalid("tokenizer.ggml.model is missing");
  if (data.model == "none" || data.model == "no_vocab")
    return unsupported("the file has no tokenizer (tokenizer.ggml.model is " + formats::quote(data.model) +
                       "); give token ids");
  if (kind == std::end(kKinds))
    return unsupported("tokenizer.ggml.model is " + formats::quote(data.model) + ", a kind that is not supported");
  ConvertedTokenizer result;
  CORTIQ_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, read_gguf_vocabulary(data, kind->defaults, result.warnings));
  if (data.huggingface_json) {
    result.tokenizer_json = *data.huggingface_json;
  } else {
    Parts parts;
    CORTIQ_RETURN_IF_ERROR(kind->build(data, vocabulary, parts, result.warnings));
    std::string& out = result.tokenizer_json;
    out =
        R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":)" + added_tokens(vocabulary, parts, data);
    auto part = [&out](const char* key, const Json& value) { out += std::string(",\"") + key + "\":" + value.dump(); };
    part("normalizer", parts.normalizer);
    part("pre_tokenizer", parts.pre_tokenizer);
    part("post_processor", parts.post_processor);
    part("decoder", parts.decoder);
    out += ",\"model\":" + parts.model + "}";
  }
  TextConfig& config = result.config;
  config.bos_id = vocabulary.bos;
  config.pad_id = vocabulary.pad;
  config.eos_ids = vocabulary.end_ids;
  config.suppress_ids = bounded_ids(data.suppress_tokens, vocabulary.size());
  if (data.chat_template)
    config.chat_template = std::string(*data.chat_template);
  return result;
}

} // namespace cortiq::runtime::text
