#pragma once

// The functions that a request offers, and how they may be used: `tools`, `tool_choice`, `parallel_tool_calls`.

#include <optional>
#include <string>
#include <vector>

#include "tools/cortiq-serve/openai/response_format.h"
#include "tools/cortiq-serve/openai/served_model.h"
#include "tools/cortiq-serve/openai/tool_calls/format.h"

namespace cortiq::serve {

struct ToolOffer {
  Json for_template; ///< what the chat template shows; null: no tools
  std::vector<Function> functions;
  const CallFormat* format = nullptr; ///< null: calls are not looked for
  bool several = true;
  bool must_call = false;
};

/// Fails for tools that a model cannot be offered: its template shows none, or writes calls in no way that is known and
/// the request wants one for certain.
StatusOr<ToolOffer> parse_tools(const Fields& fields, const ServedModel& model);

/// The answer's constraint under an offer: calls where they are a must, else what `format` says.
StatusOr<std::optional<ConstraintSource>>
constrain_calls(const ToolOffer& offer, const std::optional<ConstraintSource>& format, const ServedModel& model);

} // namespace cortiq::serve
