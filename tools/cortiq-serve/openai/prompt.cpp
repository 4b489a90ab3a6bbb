#include "tools/cortiq-serve/openai/prompt.h"

#include "tools/cortiq-serve/openai/ask.h"

namespace cortiq::serve {
namespace {

StatusOr<std::vector<uint32_t>> parse_ids(const Json& list, const std::string& field, uint64_t vocab) {
  std::vector<uint32_t> out;
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || static_cast<uint64_t>(id.get<int64_t>()) >= vocab)
      return invalid(field + " has to be a string or token ids below " + std::to_string(vocab));
    out.push_back(id.get<uint32_t>());
  }
  return out;
}

StatusOr<std::vector<uint32_t>> parse_prompt(const Json& prompt, const std::string& field, const ServedModel& model) {
  if (prompt.is_string()) {
    const std::string& text = prompt.get_ref<const std::string&>();
    CORTIQ_RETURN_IF_ERROR(fit_text(text.size(), model));
    return model.text->tokenizer.encode(text, {true, false});
  }
  if (!prompt.is_array())
    return invalid(field + " has to be a string or an array of token ids");
  return parse_ids(prompt, field, model.model->info().vocab);
}

} // namespace

StatusOr<std::vector<std::vector<uint32_t>>> parse_prompts(const Fields& fields, const char* name, uint64_t most,
                                                           const ServedModel& model) {
  const std::string field = std::string("`") + name + "`";
  const Json* prompt = fields.find(name);
  if (!prompt)
    return invalid(field + " is missing");
  std::vector<std::vector<uint32_t>> out;
  if (!prompt->is_array() || prompt->empty() || !(prompt->front().is_string() || prompt->front().is_array())) {
    CORTIQ_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, parse_prompt(*prompt, field, model));
    out.push_back(std::move(ids));
    return out;
  }
  if (prompt->size() > most)
    return invalid(field + " holds " + std::to_string(prompt->size()) + " texts; this server takes on at most " +
                   std::to_string(most) + " at a time");
  for (const Json& one : *prompt) {
    CORTIQ_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, parse_prompt(one, field, model));
    out.push_back(std::move(ids));
  }
  return out;
}

} // namespace cortiq::serve
