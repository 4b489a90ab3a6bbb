// POST /v1/completions

#include "tools/cortiq-serve/openai/ask.h"

namespace cortiq::serve {
namespace {

constexpr uint64_t kMostLikeliest = 5;
constexpr uint64_t kDefaultTokens = 16;

StatusOr<std::vector<uint32_t>> parse_ids(const Json& list, uint64_t vocab) {
  std::vector<uint32_t> out;
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || static_cast<uint64_t>(id.get<int64_t>()) >= vocab)
      return invalid("`prompt` has to be a string or token ids below " + std::to_string(vocab));
    out.push_back(id.get<uint32_t>());
  }
  return out;
}

/// A text, ids, or an array of one of either.
StatusOr<std::vector<uint32_t>> parse_prompt(const Fields& fields, const ServedModel& model) {
  const Json* prompt = fields.find("prompt");
  if (!prompt)
    return invalid("`prompt` is missing");
  if (prompt->is_array() && !prompt->empty() && (prompt->front().is_string() || prompt->front().is_array())) {
    if (prompt->size() != 1)
      return invalid("`prompt` holds " + std::to_string(prompt->size()) + " prompts; one a request");
    prompt = &prompt->front();
  }
  if (prompt->is_string())
    return model.text->tokenizer.encode(prompt->get_ref<const std::string&>(), {true, false});
  if (!prompt->is_array())
    return invalid("`prompt` has to be a string or an array of token ids");
  return parse_ids(*prompt, model.model->info().vocab);
}

class CompletionWording : public Wording {
public:
  CompletionWording(const ServedModel& model, std::string name, bool logprobs)
      : model_(model), name_(std::move(name)), logprobs_(logprobs), id_(new_id("cmpl-")) {}

  Json first_chunk() const override { return nullptr; }
  Json chunk(const Piece& piece) const override { return answer(piece.text, piece.tokens, nullptr); }
  Json last_chunk(const Finish& finish) const override { return answer("", {}, finish_reason(finish)); }
  Json usage_chunk(const Finish& finish) const override {
    Json out = head();
    out["choices"] = Json::array();
    out["usage"] = usage_json(finish);
    return out;
  }
  Json whole(const std::string& text, const std::vector<TokenRecord>& tokens, const Finish& finish) const override {
    Json out = answer(text, tokens, finish_reason(finish));
    out["usage"] = usage_json(finish);
    return out;
  }

private:
  Json head() const {
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", static_cast<int64_t>(std::time(nullptr))},
            {"model", name_}};
  }
  Json answer(const std::string& text, const std::vector<TokenRecord>& tokens, const char* reason) const {
    Json out = head();
    Json choice = {{"text", text},
                   {"index", 0},
                   {"logprobs", logprobs_ && !(tokens.empty() && reason && text.empty()) ? logprobs(tokens) : Json()},
                   {"finish_reason", reason ? Json(reason) : Json()}};
    out["choices"] = Json::array({std::move(choice)});
    return out;
  }
  Json logprobs(const std::vector<TokenRecord>& records) const {
    Json tokens = Json::array(), chosen = Json::array(), likeliest = Json::array(), offsets = Json::array();
    for (const TokenRecord& record : records) {
      tokens.push_back(model_.token_name(record.id));
      chosen.push_back(record.logprob);
      offsets.push_back(record.text_offset);
      Json row = Json::object();
      for (const auto& [id, logprob] : record.likeliest)
        row[model_.token_name(id)] = logprob;
      likeliest.push_back(std::move(row));
    }
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(chosen)},
            {"top_logprobs", std::move(likeliest)},
            {"text_offset", std::move(offsets)}};
  }

  const ServedModel& model_;
  const std::string name_;
  const bool logprobs_;
  const std::string id_;
};

} // namespace

StatusOr<Ask> parse_completion(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  CORTIQ_ASSIGN_OR_RETURN(Ask out, parse_common(fields, model, kDefaultTokens));
  CORTIQ_ASSIGN_OR_RETURN(const bool echo, fields.flag("echo", false));
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> best_of, fields.whole("best_of", 1000));
  if (echo || best_of.value_or(1) != 1 || fields.find("suffix"))
    return invalid("`echo`, `suffix` and `best_of` are not offered here");
  CORTIQ_ASSIGN_OR_RETURN(out.request.prompt, parse_prompt(fields, model));
  CORTIQ_RETURN_IF_ERROR(fit_context(out.request, model));
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> likeliest, fields.whole("logprobs", kMostLikeliest));
  if (likeliest)
    out.request.logprobs = static_cast<uint32_t>(*likeliest);
  out.wording = std::make_unique<CompletionWording>(model, out.model, likeliest.has_value());
  return out;
}

} // namespace cortiq::serve
