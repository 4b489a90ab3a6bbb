// POST /v1/completions

#include "tools/cortiq-serve/openai/ask.h"
#include "tools/cortiq-serve/openai/prompt.h"

namespace cortiq::serve {
namespace {

constexpr uint64_t kMostLikeliest = 5;
constexpr uint64_t kDefaultTokens = 16;

class CompletionWording : public Wording {
public:
  /// `echoes`: what each choice begins with.
  CompletionWording(const ServedModel& model, std::string name, bool logprobs, std::vector<std::string> echoes,
                    bool same_prompt)
      : model_(model), name_(std::move(name)), logprobs_(logprobs), echoes_(std::move(echoes)),
        same_prompt_(same_prompt), id_(new_id("cmpl-")) {}

  std::vector<Json> begin(size_t choice) override {
    if (echoes_[choice].empty())
      return {};
    return {one(choice, echoes_[choice], {}, nullptr)};
  }
  std::vector<Json> piece(size_t choice, const Piece& piece) override {
    return {one(choice, piece.text, piece.tokens, nullptr)};
  }
  std::vector<Json> end(size_t choice, const Finish& finish) override {
    return {one(choice, "", {}, finish_reason(finish))};
  }
  Json usage(const std::vector<Finish>& finishes) override {
    Json out = head();
    out["choices"] = Json::array();
    out["usage"] = usage_json(finishes, same_prompt_);
    return out;
  }
  Json whole(const std::vector<Answered>& choices) override {
    Json out = head();
    out["choices"] = Json::array();
    for (size_t i = 0; i < choices.size(); ++i)
      out["choices"].push_back(
          choice(i, echoes_[i] + choices[i].text, choices[i].tokens, finish_reason(choices[i].finish)));
    out["usage"] = usage_json(finishes_of(choices), same_prompt_);
    return out;
  }

private:
  Json head() const {
    return {{"id", id_}, {"object", "text_completion"}, {"created", now_seconds()}, {"model", name_}};
  }
  Json one(size_t index, const std::string& text, const std::vector<TokenRecord>& tokens, const char* reason) const {
    Json out = head();
    out["choices"] = Json::array({choice(index, text, tokens, reason)});
    return out;
  }
  Json choice(size_t index, const std::string& text, const std::vector<TokenRecord>& tokens, const char* reason) const {
    return {{"text", text},
            {"index", index},
            {"logprobs", logprobs_ && !(tokens.empty() && text.empty()) ? logprobs(tokens) : Json()},
            {"finish_reason", reason ? Json(reason) : Json()}};
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
  const std::vector<std::string> echoes_; ///< one a choice
  const bool same_prompt_;
  const std::string id_;
};

} // namespace

StatusOr<Ask> parse_completion(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  CORTIQ_ASSIGN_OR_RETURN(Common common, parse_common(fields, model, kDefaultTokens));
  CORTIQ_ASSIGN_OR_RETURN(const bool echo, fields.flag("echo", false));
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> best_of, fields.whole("best_of", 1000));
  if (fields.find("suffix"))
    return invalid("`suffix` is not offered here: answers go on where the prompt ends");
  if (best_of && *best_of != common.choices)
    return invalid("`best_of` is not offered here: it has to be as large as `n`");
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> likeliest, fields.whole("logprobs", kMostLikeliest));
  if (echo && likeliest)
    return invalid("`echo` together with `logprobs` is not offered here: prompts have no log-probabilities");
  if (likeliest)
    common.request.logprobs = static_cast<uint32_t>(*likeliest);
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<ConstraintSource> constraint, parse_response_format(fields));
  CORTIQ_ASSIGN_OR_RETURN(const auto prompts, parse_prompts(fields, "prompt", model.most_choices, model));
  Ask out;
  CORTIQ_ASSIGN_OR_RETURN(out.requests, spread(common, prompts, constraint, model));
  std::vector<std::string> echoes(out.requests.size());
  for (size_t i = 0; echo && i < echoes.size(); ++i) {
    CORTIQ_ASSIGN_OR_RETURN(echoes[i], model.text->tokenizer.decode(out.requests[i].prompt));
  }
  out.wording = std::make_unique<CompletionWording>(model, common.model, likeliest.has_value(), std::move(echoes),
                                                    prompts.size() == 1);
  out.model = common.model;
  out.stream = common.stream;
  out.include_usage = common.include_usage;
  return out;
}

} // namespace cortiq::serve
