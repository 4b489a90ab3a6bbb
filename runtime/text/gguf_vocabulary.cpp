#include "runtime/text/gguf_vocabulary.h"

#include <algorithm>
#include <cmath>

#include "formats/quote.h"

namespace cortiq::runtime::text {
namespace {

// Texts that end generation in every model that has them as a token, whatever type the file gives them.
constexpr std::string_view kEndTexts[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<eos>",
    "<turn|>",
    "<|return|>",
    "<|call|>",
    "<|eot|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
};

// Texts that structure an answer (gpt-oss): shown, not skipped.
constexpr std::string_view kStructureTexts[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

std::string number(uint64_t value) {
  return std::to_string(value);
}

Status read_texts(const GgufTokenizerData& data, GgufVocabulary& vocabulary) {
  if (data.tokens.empty())
    return invalid("tokenizer.ggml.tokens is missing or empty");
  if (data.tokens.size() > INT32_MAX)
    return invalid("tokenizer.ggml.tokens has " + number(data.tokens.size()) + " entries, more than ids can number");
  vocabulary.texts.reserve(data.tokens.size());
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    std::string_view text = data.tokens[id];
    if (!formats::is_utf8(text))
      return invalid("tokenizer.ggml.tokens: token " + number(id) + " is not UTF-8");
    vocabulary.texts.push_back(text.empty() ? "[EMPTY_" + number(id) + "]" : std::string(text));
  }
  vocabulary.ids.reserve(vocabulary.size());
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    auto [found, added] = vocabulary.ids.emplace(vocabulary.texts[id], id);
    if (!added)
      return invalid("tokenizer.ggml.tokens: token " + number(id) + " repeats token " + number(found->second));
  }
  return Status();
}

Status read_scores_and_types(const GgufTokenizerData& data, GgufVocabulary& vocabulary) {
  size_t count = vocabulary.size();
  auto check = [count](const char* key, size_t length) {
    return length >= count
               ? Status()
               : invalid(std::string(key) + " has " + number(length) + " entries for " + number(count) + " tokens");
  };
  vocabulary.scores.assign(count, 0);
  if (data.scores) {
    CORTIQ_RETURN_IF_ERROR(check("tokenizer.ggml.scores", data.scores->size()));
    for (size_t id = 0; id < count; ++id) {
      if (!std::isfinite((*data.scores)[id]))
        return invalid("tokenizer.ggml.scores: the score of token " + number(id) + " is not finite");
      vocabulary.scores[id] = (*data.scores)[id];
    }
  }
  vocabulary.types.assign(count, GgufTokenType::kNormal);
  if (data.token_types) {
    CORTIQ_RETURN_IF_ERROR(check("tokenizer.ggml.token_type", data.token_types->size()));
    for (size_t id = 0; id < count; ++id)
      if (int64_t type = (*data.token_types)[id]; type >= 1 && type <= 6)
        vocabulary.types[id] = static_cast<GgufTokenType>(type);
  }
  return Status();
}

std::optional<uint32_t> choose(std::optional<uint64_t> stated, int64_t otherwise, const char* key, size_t count,
                               std::vector<std::string>& warnings) {
  // All bits set is how writers say "none".
  if (stated && *stated != UINT32_MAX) {
    if (*stated < count)
      return static_cast<uint32_t>(*stated);
    warnings.push_back("tokenizer.ggml." + std::string(key) + " is " + number(*stated) + ", but there are " +
                       number(count) + " tokens; it is ignored");
  } else if (stated) {
    return std::nullopt;
  }
  if (otherwise >= 0 && static_cast<uint64_t>(otherwise) < count)
    return static_cast<uint32_t>(otherwise);
  return std::nullopt;
}

// Puts right the types of well-known texts and collects what ends generation.
void collect_end(const GgufTokenizerData& data, GgufVocabulary& vocabulary, std::vector<std::string>& warnings) {
  std::vector<uint32_t>& ends = vocabulary.end_ids;
  auto add = [&](std::optional<uint64_t> stated, const char* key) {
    if (auto id = choose(stated, -1, key, vocabulary.size(), warnings))
      ends.push_back(*id);
  };
  if (vocabulary.eos)
    ends.push_back(*vocabulary.eos);
  add(data.eot, "eot_token_id");
  add(data.eom, "eom_token_id");
  for (uint64_t id : data.fim_stop_ids)
    add(id, "fim_*_token_id");
  bool structured = vocabulary.find("<|return|>") && vocabulary.find("<|call|>");
  for (std::string_view text : kEndTexts) {
    auto id = vocabulary.find(text);
    if (!id)
      continue;
    vocabulary.types[*id] = GgufTokenType::kControl;
    if (!(structured && text == "<|end|>"))
      ends.push_back(*id);
  }
  if (structured) {
    if (auto end = vocabulary.find("<|end|>"))
      std::erase(ends, *end);
    for (std::string_view text : kStructureTexts)
      if (auto id = vocabulary.find(text))
        vocabulary.types[*id] = GgufTokenType::kUserDefined;
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

} // namespace

std::optional<uint32_t> GgufVocabulary::find(std::string_view text) const {
  auto found = ids.find(text);
  return found == ids.end() ? std::nullopt : std::optional<uint32_t>(found->second);
}

StatusOr<GgufVocabulary> read_gguf_vocabulary(const GgufTokenizerData& data, const GgufKindDefaults& defaults,
                                              std::vector<std::string>& warnings) {
  GgufVocabulary vocabulary;
  CORTIQ_RETURN_IF_ERROR(read_texts(data, vocabulary));
  CORTIQ_RETURN_IF_ERROR(read_scores_and_types(data, vocabulary));
  size_t count = vocabulary.size();
  vocabulary.bos = choose(data.bos, defaults.bos, "bos_token_id", count, warnings);
  vocabulary.eos = choose(data.eos, defaults.eos, "eos_token_id", count, warnings);
  vocabulary.unk = choose(data.unk, defaults.unk, "unknown_token_id", count, warnings);
  vocabulary.sep = choose(data.sep, defaults.sep, "seperator_token_id", count, warnings);
  vocabulary.pad = choose(data.pad, defaults.pad, "padding_token_id", count, warnings);
  vocabulary.mask = choose(data.mask, defaults.mask, "mask_token_id", count, warnings);
  // Encoders frame a text with CLS, which files of this kind give as BOS too.
  auto frame = vocabulary.bos ? static_cast<int64_t>(*vocabulary.bos) : -1;
  vocabulary.cls = choose(data.cls, frame, "cls_token_id", count, warnings);
  vocabulary.add_bos = data.add_bos.value_or(defaults.add_bos);
  vocabulary.add_eos = data.add_eos.value_or(defaults.add_eos);
  vocabulary.add_sep = data.add_sep.value_or(false);
  vocabulary.space_prefix = data.add_space_prefix.value_or(defaults.space_prefix);
  collect_end(data, vocabulary, warnings);
  if (vocabulary.add_bos && !vocabulary.bos)
    warnings.push_back("tokenizer.ggml.add_bos_token is set, but there is no BOS token; none is added");
  return vocabulary;
}

} // namespace cortiq::runtime::text
