#pragma once

// What an answer has to be: `response_format`, and of our own `grammar` and `regex`.

#include <optional>
#include <string>

#include "runtime/text/constraint.h"
#include "tools/cortiq-serve/openai/fields.h"

namespace cortiq::serve {

struct ConstraintSource {
  runtime::text::Notation notation;
  std::string source;
};

/// Nothing: any text will do.
StatusOr<std::optional<ConstraintSource>> parse_response_format(const Fields& fields);

} // namespace cortiq::serve
