// POST /v1/completions

#include <cmath>

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
        prompts_(echoes_.size()), same_prompt_(same_prompt), id_(new_id("cmpl-")) {}

  void prompt(size_t choice, std::vector<TokenRecord> tokens) override {
    // Where the text of each begins, as the answer's own records say it of theirs.
    runtime::text::StreamDecoder decoder(model_.text->tokenizer);
    uint64_t offset = 0;
    for (TokenRecord& token : tokens) {
      token.text_offset = offset;
      if (const StatusOr<std::string> text = decoder.push(token.id); text.ok())
        offset += text->size();
    }
    prompts_[choice] = std::move(tokens);
  }
  std::vector<Json> begin(size_t choice) override {
    if (echoes_[choice].empty())
      return {};
    return {one(choice, echoes_[choice], prompts_[choice], nullptr)};
  }
  std::vector<Json> piece(size_t choice, const Piece& piece) override {
    return {one(choice, piece.text, behind_echo(choice, piece.tokens), nullptr)};
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
    for (size_t i = 0; i < choices.size(); ++i) {
      std::vector<TokenRecord> tokens = prompts_[i];
      for (TokenRecord& token : behind_echo(i, choices[i].tokens))
        tokens.push_back(std::move(token));
      out["choices"].push_back(choice(i, echoes_[i] + choices[i].text, tokens, finish_reason(choices[i].finish)));
    }
    out["usage"] = usage_json(finishes_of(choices), same_prompt_);
    return out;
  }

private:
  std::vector<TokenRecord> behind_echo(size_t choice, std::vector<TokenRecord> tokens) const {
    for (TokenRecord& token : tokens)
      token.text_offset += echoes_[choice].size();
    return tokens;
  }
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
      const bool unknown = std::isnan(record.logprob); // of a prompt's first token
      chosen.push_back(unknown ? Json() : Json(record.logprob));
      offsets.push_back(record.text_offset);
      Json row = Json::object();
      for (const auto& [id, logprob] : record.likeliest)
        row[model_.token_name(id)] = logprob;
      likeliest.push_back(unknown ? Json() : std::move(row));
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
  std::vector<std::vector<TokenRecord>> prompts_;
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
  out.score_prompts = echo && likeliest;
  out.model = common.model;
  out.stream = common.stream;
  out.include_usage = common.include_usage;
  return out;
}

} // namespace cortiq::serve
