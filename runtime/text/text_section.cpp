// Layout: 8 bytes magic, u32 little-endian length of the configuration (a JSON object), the configuration, the
// tokenizer.

#include "runtime/text/text_section.h"

#include <cstring>
#include <string_view>

#include <nlohmann/json.hpp>

#include "formats/json.h"

namespace cortiq::runtime::text {
namespace {

using formats::Json;

constexpr char kMagic[8] = {'C', 'Q', 'T', 'E', 'X', 'T', '1', '\n'};
constexpr size_t kHeaderBytes = sizeof kMagic + sizeof(uint32_t);

Status damaged() {
  return invalid("the tokenizer section is damaged; compile the model again");
}

std::optional<std::vector<uint32_t>> read_ids(const Json& object, const char* key) {
  std::vector<uint32_t> ids;
  auto found = object.find(key);
  if (found == object.end())
    return ids;
  if (!found->is_array())
    return std::nullopt;
  for (const Json& id : *found) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX)
      return std::nullopt;
    ids.push_back(id.get<uint32_t>());
  }
  return ids;
}

StatusOr<TextConfig> read_config(std::string_view text) {
  CORTIQ_ASSIGN_OR_RETURN(Json object, formats::parse_json(text, "the tokenizer section"));
  if (!object.is_object())
    return damaged();
  TextConfig config;
  auto bos = read_ids(object, "bos"), eos = read_ids(object, "eos"), pad = read_ids(object, "pad"),
       suppress = read_ids(object, "suppress");
  if (!bos || !eos || !pad || !suppress || bos->size() > 1 || pad->size() > 1)
    return damaged();
  if (!bos->empty())
    config.bos_id = bos->front();
  if (!pad->empty())
    config.pad_id = pad->front();
  config.eos_ids = std::move(*eos);
  config.suppress_ids = std::move(*suppress);
  if (auto found = object.find("chat_template"); found != object.end()) {
    if (!found->is_string())
      return damaged();
    config.chat_template = found->get<std::string>();
  }
  return config;
}

} // namespace

StatusOr<std::vector<uint8_t>> pack_text_section(std::span<const uint8_t> tokenizer_json, const TextConfig& config) {
  CORTIQ_ASSIGN_OR_RETURN(std::vector<uint8_t> compact, compact_tokenizer(tokenizer_json));
  CORTIQ_RETURN_IF_ERROR(Tokenizer::from_bytes(compact).status());
  Json object = {{"eos", config.eos_ids}, {"suppress", config.suppress_ids}};
  if (config.bos_id)
    object["bos"] = {*config.bos_id};
  if (config.pad_id)
    object["pad"] = {*config.pad_id};
  if (config.chat_template)
    object["chat_template"] = *config.chat_template;
  std::string text = object.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > UINT32_MAX)
    return invalid("the chat template is too large for an artifact");
  std::vector<uint8_t> section(kHeaderBytes);
  std::memcpy(section.data(), kMagic, sizeof kMagic);
  for (size_t i = 0; i < sizeof(uint32_t); ++i)
    section[sizeof kMagic + i] = static_cast<uint8_t>(text.size() >> (8 * i));
  section.insert(section.end(), text.begin(), text.end());
  section.insert(section.end(), compact.begin(), compact.end());
  return section;
}

StatusOr<TextModel> open_text_section(std::span<const uint8_t> section) {
  if (section.size() < kHeaderBytes || std::memcmp(section.data(), kMagic, sizeof kMagic) != 0)
    return damaged();
  size_t length = 0;
  for (size_t i = 0; i < sizeof(uint32_t); ++i)
    length |= static_cast<size_t>(section[sizeof kMagic + i]) << (8 * i);
  section = section.subspan(kHeaderBytes);
  if (length > section.size())
    return damaged();
  std::string_view text(reinterpret_cast<const char*>(section.data()), length);
  CORTIQ_ASSIGN_OR_RETURN(TextConfig config, read_config(text));
  CORTIQ_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::from_bytes(section.subspan(length)));
  return TextModel{std::move(tokenizer), std::move(config)};
}

} // namespace cortiq::runtime::text
