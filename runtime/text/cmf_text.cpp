#include "runtime/text/cmf_text.h"

#include <algorithm>

namespace cortiq::runtime::text {
namespace {

constexpr std::string_view kEndTexts[] = {"<|endoftext|>", "</s>", "[EOS]", "<|im_end|>"};
constexpr std::string_view kBeginTexts[] = {"<s>", "[BOS]", "<|startoftext|>", "<bos>"};

/// What the tokenizer itself puts before a text; its first id if that is one of the customary BOS tokens.
std::optional<uint32_t> added_bos(const Tokenizer& tokenizer) {
  StatusOr<std::vector<uint32_t>> ids = tokenizer.encode("");
  if (!ids.ok() || ids->empty())
    return std::nullopt;
  std::optional<std::string> text = tokenizer.token_text(ids->front());
  return text && (*text == "<s>" || *text == "<bos>") ? std::optional(ids->front()) : std::nullopt;
}

} // namespace

TextConfig cmf_text_config(const Tokenizer& tokenizer, const std::optional<formats::CmfTokenizerConfig>& bundle) {
  TextConfig config;
  uint32_t count = tokenizer.vocab_size();
  for (std::string_view text : kEndTexts)
    if (std::optional<uint32_t> id = tokenizer.token_id(text))
      config.eos_ids.push_back(*id);
  config.bos_id = added_bos(tokenizer);
  if (bundle) {
    for (uint32_t id : bundle->eos_token_ids)
      if (id < count)
        config.eos_ids.push_back(id);
    if (!config.bos_id && bundle->bos_token_id && *bundle->bos_token_id < count)
      config.bos_id = bundle->bos_token_id;
    if (bundle->pad_token_id && *bundle->pad_token_id < count)
      config.pad_id = bundle->pad_token_id;
    config.chat_template = bundle->chat_template;
  }
  for (std::string_view text : kBeginTexts)
    if (!config.bos_id)
      config.bos_id = tokenizer.token_id(text);
  if (!config.pad_id)
    config.pad_id = tokenizer.token_id("<pad>");
  std::sort(config.eos_ids.begin(), config.eos_ids.end());
  config.eos_ids.erase(std::unique(config.eos_ids.begin(), config.eos_ids.end()), config.eos_ids.end());
  return config;
}

} // namespace cortiq::runtime::text
