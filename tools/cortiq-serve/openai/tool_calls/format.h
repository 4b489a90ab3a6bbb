#pragma once

// How families of models write calls of functions into their answers.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cortiq-serve/openai/fields.h"

namespace cortiq::serve {

/// A function that a client offers.
struct Function {
  std::string name;
  Json parameters;     ///< a JSON schema
  bool strict = false; ///< the schema holds in full
};

struct ToolCall {
  std::string name, arguments; ///< the latter JSON text
};

/// What was read from the front of a text.
struct ReadCalls {
  size_t taken = 0; ///< bytes; 0: no call, or not all of one yet
  std::vector<ToolCall> calls;
};

/// Spells a text of a grammar: as the model's own token where that is a special one, else letter by letter.
using Spell = std::function<std::string(std::string_view)>;

/// One family's way.
struct CallFormat {
  const char* name;
  /// Whether a model with this chat template writes so.
  bool (*speaks)(std::string_view chat_template);
  /// Texts that a call begins with.
  std::span<const std::string_view> openers;
  /// Calls are the whole answer, or none of it.
  bool at_start;
  /// Reads from a text that begins with an opener. `whole`: nothing follows it.
  ReadCalls (*read)(std::string_view text, bool whole, const std::vector<Function>& functions);
  /// A Lark grammar of nothing but calls of `functions`: one, or with `several` one or more.
  std::string (*grammar)(const std::vector<Function>& functions, bool several, std::string_view chat_template,
                         const Spell& spell);
};

/// The way of a chat template; null where it is none that is known.
const CallFormat* find_call_format(std::string_view chat_template);

extern const CallFormat kHermesCalls, kLlama3Calls, kMistralCalls, kXmlCalls;

// What the formats share.

/// The end of the JSON value that begins at `from`; npos: it has none.
size_t json_end(std::string_view text, size_t from);
/// A call from a JSON object with a name, and arguments under one of `fields`.
bool read_call(std::string_view json, std::initializer_list<const char*> fields, ToolCall& out);
/// Rules f0, f1, … of a Lark grammar: for each function the JSON object that calls it. `field` holds its arguments.
std::string call_rules(const std::vector<Function>& functions, const char* field);
/// "(f0 | f1 | …)"
std::string any_call(const std::vector<Function>& functions);
/// A string of a Lark grammar.
std::string lark_string(std::string_view text);

} // namespace cortiq::serve
