#include "runtime/text/gguf_text.h"

#include <initializer_list>

namespace cortiq::runtime::text {
namespace {

using formats::GgufFile;

/// Fills `out` if the key is there.
template <class Out, class Value>
Status take(const GgufFile& file, std::string_view key, StatusOr<Value> (GgufFile::*get)(std::string_view) const,
            Out& out) {
  if (!file.has(key))
    return Status();
  CORTIQ_ASSIGN_OR_RETURN(out, (file.*get)(key));
  return Status();
}

struct IdKey {
  const char* key;
  std::optional<uint64_t> GgufTokenizerData::* field;
};

constexpr IdKey kIdKeys[] = {
    {"tokenizer.ggml.bos_token_id", &GgufTokenizerData::bos},
    {"tokenizer.ggml.cls_token_id", &GgufTokenizerData::cls},
    {"tokenizer.ggml.eom_token_id", &GgufTokenizerData::eom},
    {"tokenizer.ggml.eos_token_id", &GgufTokenizerData::eos},
    {"tokenizer.ggml.eot_token_id", &GgufTokenizerData::eot},
    {"tokenizer.ggml.mask_token_id", &GgufTokenizerData::mask},
    {"tokenizer.ggml.padding_token_id", &GgufTokenizerData::pad},
    {"tokenizer.ggml.seperator_token_id", &GgufTokenizerData::sep},
    {"tokenizer.ggml.unknown_token_id", &GgufTokenizerData::unk},
};

// An id may be stored signed, with -1 for "none".
Status take_id(const GgufFile& file, const char* key, std::optional<uint64_t>& out) {
  if (!file.has(key))
    return Status();
  CORTIQ_ASSIGN_OR_RETURN(int64_t id, file.get_i64(key));
  out = id < 0 ? UINT32_MAX : static_cast<uint64_t>(id);
  return Status();
}

} // namespace

StatusOr<GgufTokenizerData> read_gguf_tokenizer_data(const GgufFile& file) {
  GgufTokenizerData data;
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.model", &GgufFile::get_string, data.model));
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.pre", &GgufFile::get_string, data.pre));
  CORTIQ_RETURN_IF_ERROR(take(file, "general.name", &GgufFile::get_string, data.general_name));
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.tokens", &GgufFile::get_string_array, data.tokens));
  if (const formats::GgufEntry* scores = file.entry("tokenizer.ggml.scores"); scores != nullptr) {
    const auto* array = std::get_if<formats::GgufArray>(&scores->value);
    if (array != nullptr && array->element == formats::GgufType::kI32) {
      CORTIQ_ASSIGN_OR_RETURN(std::vector<int64_t> whole, file.get_i64_array("tokenizer.ggml.scores"));
      data.scores.emplace(whole.begin(), whole.end());
    } else {
      CORTIQ_ASSIGN_OR_RETURN(data.scores, file.get_f64_array("tokenizer.ggml.scores"));
    }
  }
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.token_type", &GgufFile::get_i64_array, data.token_types));
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.merges", &GgufFile::get_string_array, data.merges));
  for (const IdKey& id : kIdKeys)
    CORTIQ_RETURN_IF_ERROR(take_id(file, id.key, data.*id.field));
  for (const char* key :
       {"tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id", "tokenizer.ggml.fim_sep_token_id"}) {
    std::optional<uint64_t> id;
    CORTIQ_RETURN_IF_ERROR(take_id(file, key, id));
    if (id)
      data.fim_stop_ids.push_back(*id);
  }
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.add_bos_token", &GgufFile::get_bool, data.add_bos));
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.add_eos_token", &GgufFile::get_bool, data.add_eos));
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.add_sep_token", &GgufFile::get_bool, data.add_sep));
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.add_space_prefix", &GgufFile::get_bool, data.add_space_prefix));
  CORTIQ_RETURN_IF_ERROR(
      take(file, "tokenizer.ggml.remove_extra_whitespaces", &GgufFile::get_bool, data.remove_extra_whitespaces));
  if (file.has("tokenizer.ggml.precompiled_charsmap")) {
    CORTIQ_ASSIGN_OR_RETURN(std::vector<int64_t> map, file.get_i64_array("tokenizer.ggml.precompiled_charsmap"));
    for (int64_t byte : map) // stored as u8 or i8
      data.precompiled_charsmap.push_back(static_cast<uint8_t>(byte));
  }
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.normalizer.lowercase", &GgufFile::get_bool, data.lowercase));
  CORTIQ_RETURN_IF_ERROR(
      take(file, "tokenizer.ggml.normalizer.strip_accents", &GgufFile::get_bool, data.strip_accents));
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.ggml.suppress_tokens", &GgufFile::get_i64_array, data.suppress_tokens));
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.huggingface.json", &GgufFile::get_string, data.huggingface_json));
  CORTIQ_RETURN_IF_ERROR(take(file, "tokenizer.chat_template", &GgufFile::get_string, data.chat_template));
  return data;
}

} // namespace cortiq::runtime::text
