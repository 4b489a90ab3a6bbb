#pragma once

// What a client asked for, whichever endpoint it used.

#include <memory>
#include <string>
#include <vector>

#include "formats/status.h"
#include "tools/cortiq-serve/engine/job.h"
#include "tools/cortiq-serve/openai/fields.h"
#include "tools/cortiq-serve/openai/response_format.h"
#include "tools/cortiq-serve/openai/served_model.h"
#include "tools/cortiq-serve/openai/wording.h"

namespace cortiq::serve {

struct Ask {
  std::string model;             ///< as the client named it
  std::vector<Request> requests; ///< one a choice
  bool stream = false, include_usage = false;
  bool score_prompts = false; ///< the wording wants to know how likely the prompts are
  std::unique_ptr<Wording> wording;
};

/// What both endpoints have in common of a request.
struct Common {
  std::string model;
  Request request; ///< without its prompt
  uint64_t choices = 1;
  bool stream = false, include_usage = false;
};

/// Sampling, limits, stops, the model and its skill, streaming. `default_tokens`: of an answer for which no limit is
/// given.
StatusOr<Common> parse_common(const Fields& fields, const ServedModel& model, uint64_t default_tokens);

/// Refuses a text of which the context cannot hold the tokens, however it is cut, before it is cut.
Status fit_text(uint64_t bytes, const ServedModel& model);
/// Checks the prompt against the context and gives it a first token where it has none.
Status fit_context(Request& request, const ServedModel& model);

/// The requests of `choices` answers each to `prompts`: choices of one prompt differ in their seeds. Fails for more
/// than the server takes on at a time, and where the constraint does.
StatusOr<std::vector<Request>> spread(const Common& common, const std::vector<std::vector<uint32_t>>& prompts,
                                      const std::optional<ConstraintSource>& constraint, const ServedModel& model);

StatusOr<Ask> parse_chat(const Json& body, const ServedModel& model);
StatusOr<Ask> parse_completion(const Json& body, const ServedModel& model);

} // namespace cortiq::serve
