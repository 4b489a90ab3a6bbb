#include "runtime/cli/chat.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

#include "formats/quote.h"
#include "runtime/cli/output.h"
#include "runtime/cli/overlay.h"
#include "runtime/generate/common_beginning.h"
#include "runtime/generate/generate.h"
#include "runtime/text/conversation.h"

namespace cortiq::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

class Conversation {
public:
  Conversation(const RunOptions& options, Loaded& loaded) : options_(options), loaded_(loaded) {
    if (!options.system.empty())
      messages_.push_back({{"role", "system"}, {"content", options.system}});
  }

  /// Obeys "/skill ID", "/blend ID:W,…" or "/task NAME"; a word alone asks what is in force. What the engine holds was
  /// computed under the former selection, so the next turn runs the whole conversation again.
  Status command(const std::string& line) {
    const size_t space = line.find_first_of(kBlanks);
    const std::string word = line.substr(1, space == line.npos ? line.npos : space - 1);
    const std::string value = trimmed(space == line.npos ? "" : line.substr(space));
    if (word != "skill" && word != "blend" && word != "task")
      return invalid("there is no command /" + word +
                     "; there are /skill ID, /blend ID:W,... and /task NAME, and a blank before it makes it a message");
    if (value.empty()) {
      CORTIQ_RETURN_IF_ERROR(settle());
      print_selection();
      return {};
    }
    RunOptions changed = options_;
    if (word == "skill" || word == "blend") {
      changed.skill = word == "skill" ? value : "";
      changed.blend = word == "blend" ? value : "";
    } else {
      changed.task = value;
    }
    // The choice of --skill auto waits for the next prompt.
    CORTIQ_RETURN_IF_ERROR(changed.skill != "auto" ? apply_overlay(changed, {}, loaded_)
                                                   : check_routing(loaded_.engine->overlay()));
    options_ = std::move(changed);
    settled_ = options_.skill != "auto";
    held_.clear();
    if (settled_)
      print_selection();
    return {};
  }
  /// A slash and lower-case letters, known or misspelt: "/usr/bin" is a message.
  static bool is_command(const std::string& line) {
    const std::string word = line.substr(0, line.find_first_of(kBlanks));
    return word.size() > 1 && word[0] == '/' &&
           std::all_of(word.begin() + 1, word.end(), [](char letter) { return letter >= 'a' && letter <= 'z'; });
  }

  /// Sends one message and prints the answer. After a failure the conversation is as before.
  Status say(const std::string& message) {
    messages_.push_back({{"role", "user"}, {"content", message}});
    StatusOr<std::string> answer = respond();
    if (!answer.ok()) {
      messages_.erase(messages_.size() - 1);
      return answer.status();
    }
    messages_.push_back({{"role", "assistant"}, {"content", *answer}});
    return {};
  }

  /// Goes on with a saved session: with its messages, where it was a chat, else with its tokens alone. To be called
  /// before the first message.
  Status load() {
    CORTIQ_RETURN_IF_ERROR(settle());
    CORTIQ_ASSIGN_OR_RETURN(const SavedSequence saved, loaded_.restore(options_.load_session));
    held_.assign(saved.tokens.begin(), saved.tokens.begin() + static_cast<std::ptrdiff_t>(loaded_.engine->position()));
    if (saved.conversation.empty())
      return {};
    Json messages = Json::parse(saved.conversation, nullptr, /*allow_exceptions=*/false);
    const auto sound = [](const Json& message) {
      return message.is_object() && message.contains("role") && message["role"].is_string() &&
             message.contains("content") && message["content"].is_string();
    };
    if (!messages.is_array() || !std::all_of(messages.begin(), messages.end(), sound))
      return invalid(formats::quote(options_.load_session) + ": its conversation is damaged; begin a new one");
    if (!options_.system.empty())
      return invalid("--system begins a conversation, and " + formats::quote(options_.load_session) +
                     " goes on with one; leave one of them out");
    messages_ = std::move(messages);
    return {};
  }

  Status save() {
    loaded_.engine->rewind(std::min<uint64_t>(held_.size(), loaded_.engine->position()));
    held_.resize(loaded_.engine->position());
    return loaded_.save(options_.save_session,
                        {held_, 0, messages_.dump(-1, ' ', false, Json::error_handler_t::replace)});
  }

private:
  static constexpr const char* kBlanks = " \t\r";

  static std::string trimmed(std::string text) {
    text.erase(0, text.find_first_not_of(kBlanks));
    text.erase(text.find_last_not_of(kBlanks) + 1);
    return text;
  }

  /// Puts in force what the command line asked for, unless a prompt has to choose.
  Status settle() {
    if (settled_ || options_.skill == "auto")
      return {};
    settled_ = true;
    return apply_overlay(options_, {}, loaded_);
  }

  void print_selection() const {
    const std::string text = settled_ ? formats::describe_selection(loaded_.engine->overlay(), loaded_.selection)
                                      : "the next prompt chooses the skill";
    std::fprintf(stderr, "(%s)\n", text.c_str());
  }

  StatusOr<std::vector<uint32_t>> encode() const {
    const std::string variables = Json{{"messages", messages_}}.dump(-1, ' ', false, Json::error_handler_t::replace);
    CORTIQ_ASSIGN_OR_RETURN(text::EncodedChat chat,
                            text::encode_conversation(*loaded_.text, variables, text::local_time_now()));
    return std::move(chat.ids);
  }

  StatusOr<std::string> respond() {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids, encode());
    if (ids.size() > loaded_.engine->max_context())
      return invalid("the conversation has " + std::to_string(ids.size()) + " tokens, the context holds " +
                     std::to_string(loaded_.engine->max_context()) + "; begin a new one");
    if (!settled_) {
      // The choice of --skill auto reads the prompt, which leaves the engine empty.
      CORTIQ_RETURN_IF_ERROR(apply_overlay(options_, ids, loaded_));
      settled_ = true;
      held_.clear();
    }
    // What the engine holds already and the new text begins with is kept.
    const uint64_t kept = common_beginning(held_, ids);
    loaded_.engine->rewind(kept);
    held_.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(kept));

    sampling::Sampler sampler = make_sampler(options_, loaded_);
    sampler.observe(std::span(ids).first(kept));
    Printer printer(loaded_.text, !options_.json);
    StatusOr<Generated> result =
        generate(*loaded_.engine, sampler, std::span(ids).subspan(kept), generate_options(options_, loaded_),
                 [&](uint32_t id, std::span<const float>) { return printer.push(id); });
    if (!result.ok())
      return result.status();
    CORTIQ_RETURN_IF_ERROR(printer.finish());
    held_ = ids;
    held_.insert(held_.end(), result->tokens.begin(), result->tokens.end());
    held_.resize(loaded_.engine->position()); // the last token was chosen, but not run
    if (options_.json)
      CORTIQ_RETURN_IF_ERROR(print_json(*result, printer.text(), loaded_, kept));
    else if (result->finish == FinishReason::kLength && loaded_.engine->position() == loaded_.engine->max_context())
      std::fprintf(stderr, "(the context of %llu tokens is full)\n",
                   static_cast<unsigned long long>(loaded_.engine->max_context()));
    if (options_.stats)
      print_stats(*result, loaded_, kept);
    return printer.text();
  }

  RunOptions options_;
  Loaded& loaded_;
  bool settled_ = false; ///< the overlay that the options ask for is in force
  Json messages_ = Json::array();
  std::vector<uint32_t> held_; // ids whose keys and values the engine holds
};

/// Reads messages and commands until the end of input.
Status converse(Conversation& conversation) {
  const bool terminal = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
  while (true) {
    if (terminal)
      std::fputs("> ", stderr);
    std::string line;
    if (!std::getline(std::cin, line))
      break;
    if (line.empty())
      continue;
    if (Conversation::is_command(line)) {
      // A slip of the pen does not end the conversation.
      if (const Status status = conversation.command(line); !status.ok())
        std::fprintf(stderr, "(%s)\n", status.message().c_str());
      continue;
    }
    CORTIQ_RETURN_IF_ERROR(conversation.say(line));
  }
  if (terminal)
    std::fputs("\n", stderr);
  return {};
}

} // namespace

Status run_chat(const RunOptions& options, Loaded& loaded) {
  if (!loaded.text)
    return no_tokenizer(loaded);
  Conversation conversation(options, loaded);
  if (!options.load_session.empty())
    CORTIQ_RETURN_IF_ERROR(conversation.load());
  CORTIQ_RETURN_IF_ERROR(options.prompt ? conversation.say(*options.prompt) : converse(conversation));
  return options.save_session.empty() ? Status() : conversation.save();
}

} // namespace cortiq::runtime::cli
