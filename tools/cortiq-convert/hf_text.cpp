#include "tools/cortiq-convert/hf_text.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "runtime/text/tokenizer.h"
#include "tools/cortiq-convert/text_bundle.h"

namespace cortiq::convert {

using formats::Json;
using formats::MappedFile;
using formats::quote;

namespace {

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Ids of a field that holds one or a list.
std::vector<uint32_t> ids_of(const Json& object, const char* name) {
  std::vector<uint32_t> ids;
  const auto add = [&](const Json& value) {
    if (value.is_number_unsigned() && value.get<uint64_t>() <= UINT32_MAX)
      ids.push_back(value.get<uint32_t>());
  };
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end())
    return ids;
  if (found->is_array())
    std::for_each(found->begin(), found->end(), add);
  else
    add(*found);
  return ids;
}

std::optional<uint32_t> id_of(const Json& object, const char* name) {
  const std::vector<uint32_t> ids = ids_of(object, name);
  return ids.empty() ? std::nullopt : std::optional(ids[0]);
}

/// The id of a token that tokenizer_config.json names by its text, plain or as an object with the text inside.
std::optional<uint32_t> named_token(const runtime::text::Tokenizer& tokenizer, const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end())
    return std::nullopt;
  if (found->is_string())
    return tokenizer.token_id(found->get_ref<const std::string&>());
  const auto content = found->is_object() ? found->find("content") : found->end();
  if (found->is_object() && content != found->end() && content->is_string())
    return tokenizer.token_id(content->get_ref<const std::string&>());
  return std::nullopt;
}

StatusOr<std::optional<std::string>> chat_template(const std::string& folder, const Json& tokenizer_config,
                                                   std::vector<std::string>& warnings) {
  const std::string path = folder + "/chat_template.jinja";
  if (exists(path)) {
    CORTIQ_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
    if (!formats::is_utf8(text_of(file.bytes())))
      return invalid(quote(path) + " is not UTF-8");
    return std::optional(std::string(text_of(file.bytes())));
  }
  const auto found = tokenizer_config.is_object() ? tokenizer_config.find("chat_template") : tokenizer_config.end();
  if (!tokenizer_config.is_object() || found == tokenizer_config.end() || found->is_null())
    return std::optional<std::string>();
  if (found->is_string())
    return std::optional(found->get<std::string>());
  const std::string place = quote(folder + "/tokenizer_config.json");
  if (!found->is_array())
    return invalid(place + ": chat_template is neither a text nor a list of templates");
  for (const Json& entry : *found) // several, by name
    if (entry.is_object() && entry.value("name", Json()) == "default" && entry.value("template", Json()).is_string())
      return std::optional(entry["template"].get<std::string>());
  warnings.push_back(place + ": none of its chat templates is called default, so the result has none");
  return std::optional<std::string>();
}

} // namespace

StatusOr<Json> read_folder_json(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (!exists(path))
    return Json();
  CORTIQ_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  return formats::parse_json(text_of(file.bytes()), quote(path));
}

Status read_hf_text(const std::string& folder, const Json& config, SourceModel& model) {
  const std::string path = folder + "/tokenizer.json";
  if (!exists(path))
    return invalid(quote(folder) + " has no tokenizer.json; older tokenizer files have to be saved in that form first");
  CORTIQ_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  StatusOr<runtime::text::Tokenizer> tokenizer = runtime::text::Tokenizer::from_bytes(file.bytes());
  CORTIQ_RETURN_IF_ERROR(tokenizer.status().with_prefix(quote(path)));
  model.tokenizer_json.assign(file.bytes().begin(), file.bytes().end());
  CORTIQ_ASSIGN_OR_RETURN(const Json generation, read_folder_json(folder, "generation_config.json"));
  CORTIQ_ASSIGN_OR_RETURN(const Json names, read_folder_json(folder, "tokenizer_config.json"));

  runtime::text::TextConfig text;
  text.eos_ids = ids_of(generation, "eos_token_id");
  if (text.eos_ids.empty())
    text.eos_ids = ids_of(config, "eos_token_id");
  if (const std::optional<uint32_t> id = named_token(*tokenizer, names, "eos_token"))
    text.eos_ids.push_back(*id);
  std::sort(text.eos_ids.begin(), text.eos_ids.end());
  text.eos_ids.erase(std::unique(text.eos_ids.begin(), text.eos_ids.end()), text.eos_ids.end());
  text.bos_id = named_token(*tokenizer, names, "bos_token");
  if (!text.bos_id)
    text.bos_id = id_of(config, "bos_token_id");
  text.pad_id = named_token(*tokenizer, names, "pad_token");
  CORTIQ_ASSIGN_OR_RETURN(text.chat_template, chat_template(folder, names, model.warnings));
  model.tokenizer_config = text_bundle(text);
  return {};
}

} // namespace cortiq::convert
