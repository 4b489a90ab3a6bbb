#include "tools/cortiq-serve/openai/chat_wording.h"

#include "tools/cortiq-serve/openai/tool_calls/reader.h"

namespace cortiq::serve {
namespace {

class ChatWording : public Wording {
public:
  ChatWording(const ServedModel& model, std::string name, bool logprobs, const ToolOffer& offer, size_t choices)
      : model_(model), name_(std::move(name)), logprobs_(logprobs), id_(new_id("chatcmpl-")) {
    if (offer.format)
      for (size_t i = 0; i < choices; ++i)
        readers_.emplace_back(*offer.format, offer.functions, offer.several);
  }

  std::vector<Json> begin(size_t choice) override {
    return {chunk(choice, {{"role", "assistant"}, {"content", ""}}, {}, nullptr)};
  }

  std::vector<Json> piece(size_t choice, const Piece& piece) override {
    if (readers_.empty())
      return {chunk(choice, {{"content", piece.text}}, piece.tokens, nullptr)};
    return deltas(choice, readers_[choice].push(piece.text), piece.tokens);
  }

  std::vector<Json> end(size_t choice, const Finish& finish) override {
    std::vector<Json> out;
    if (!readers_.empty())
      out = deltas(choice, readers_[choice].finish(), {});
    out.push_back(chunk(choice, Json::object(), {}, reason(choice, finish)));
    return out;
  }

  Json usage(const std::vector<Finish>& finishes) override {
    Json out = head("chat.completion.chunk");
    out["choices"] = Json::array();
    out["usage"] = usage_json(finishes, true);
    return out;
  }

  Json whole(const std::vector<Answered>& choices) override {
    Json out = head("chat.completion");
    out["choices"] = Json::array();
    for (size_t i = 0; i < choices.size(); ++i) {
      const Answered& answered = choices[i];
      out["choices"].push_back({{"index", i},
                                {"message", message(i, answered.text)},
                                {"logprobs", logprobs_ ? logprobs(answered.tokens) : Json()},
                                {"finish_reason", reason(i, answered.finish)}});
    }
    out["usage"] = usage_json(finishes_of(choices), true);
    return out;
  }

private:
  Json head(const char* object) const {
    return {{"id", id_}, {"object", object}, {"created", now_seconds()}, {"model", name_}};
  }

  Json chunk(size_t choice, Json delta, const std::vector<TokenRecord>& tokens, const char* reason) const {
    Json out = head("chat.completion.chunk");
    Json one = {{"index", choice},
                {"delta", std::move(delta)},
                {"logprobs", logprobs_ && !tokens.empty() ? logprobs(tokens) : Json()},
                {"finish_reason", reason ? Json(reason) : Json()}};
    out["choices"] = Json::array({std::move(one)});
    return out;
  }

  /// The text that became certain, and each call in two parts, as clients put them together: what it is, and its
  /// arguments.
  std::vector<Json> deltas(size_t choice, const CallReader::Out& found, const std::vector<TokenRecord>& tokens) {
    std::vector<Json> out;
    if (!found.text.empty() || (logprobs_ && !tokens.empty()))
      out.push_back(
          chunk(choice, found.text.empty() ? Json::object() : Json({{"content", found.text}}), tokens, nullptr));
    uint64_t index = readers_[choice].calls() - found.calls.size();
    for (const ToolCall& call : found.calls) {
      Json begun = call_json(call);
      begun["function"]["arguments"] = "";
      begun["index"] = index;
      out.push_back(chunk(choice, {{"tool_calls", Json::array({std::move(begun)})}}, {}, nullptr));
      Json rest = {{"index", index++}, {"function", {{"arguments", call.arguments}}}};
      out.push_back(chunk(choice, {{"tool_calls", Json::array({std::move(rest)})}}, {}, nullptr));
    }
    return out;
  }

  Json message(size_t choice, const std::string& text) {
    Json out = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
    if (readers_.empty())
      return out;
    CallReader::Out found = readers_[choice].push(text);
    CallReader::Out rest = readers_[choice].finish();
    found.text += rest.text;
    std::move(rest.calls.begin(), rest.calls.end(), std::back_inserter(found.calls));
    out["content"] = found.text.empty() && !found.calls.empty() ? Json() : Json(found.text);
    for (const ToolCall& call : found.calls)
      out["tool_calls"].push_back(call_json(call));
    return out;
  }

  static Json call_json(const ToolCall& call) {
    return {{"id", new_id("call_")},
            {"type", "function"},
            {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
  }

  const char* reason(size_t choice, const Finish& finish) const {
    if (finish.outcome == Outcome::kStop && !readers_.empty() && readers_[choice].calls() != 0)
      return "tool_calls";
    return finish_reason(finish);
  }

  Json entry(uint32_t id, double logprob) const {
    const std::string bytes = model_.token_bytes(id);
    Json list = Json::array();
    for (const char byte : bytes)
      list.push_back(static_cast<unsigned char>(byte));
    return {{"token", model_.token_name(id)}, {"logprob", logprob}, {"bytes", std::move(list)}};
  }

  Json logprobs(const std::vector<TokenRecord>& tokens) const {
    Json content = Json::array();
    for (const TokenRecord& token : tokens) {
      Json one = entry(token.id, token.logprob);
      one["top_logprobs"] = Json::array();
      for (const auto& [id, logprob] : token.likeliest)
        one["top_logprobs"].push_back(entry(id, logprob));
      content.push_back(std::move(one));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }

  const ServedModel& model_;
  const std::string name_;
  const bool logprobs_;
  const std::string id_;
  std::vector<CallReader> readers_; ///< one a choice; none: everything is text
};

} // namespace

std::unique_ptr<Wording> chat_wording(const ServedModel& model, std::string name, bool logprobs, const ToolOffer& offer,
                                      size_t choices) {
  return std::make_unique<ChatWording>(model, std::move(name), logprobs, offer, choices);
}

} // namespace cortiq::serve
