#pragma once

// What a client asked for, whichever endpoint it used.

#include <memory>
#include <string>
#include <vector>

#include "formats/status.h"
#include "tools/cortiq-serve/engine/job.h"
#include "tools/cortiq-serve/openai/fields.h"
#include "tools/cortiq-serve/openai/served_model.h"

namespace cortiq::serve {

/// How an endpoint words what was generated.
class Wording {
public:
  virtual ~Wording() = default;
  /// Chunks of a stream: before the first piece (none: null), a piece, the end, and the usage where it was asked for.
  virtual Json first_chunk() const = 0;
  virtual Json chunk(const Piece& piece) const = 0;
  virtual Json last_chunk(const Finish& finish) const = 0;
  virtual Json usage_chunk(const Finish& finish) const = 0;
  /// The whole answer at once.
  virtual Json whole(const std::string& text, const std::vector<TokenRecord>& tokens, const Finish& finish) const = 0;
};

struct Ask {
  std::string model; ///< as the client named it
  Request request;
  bool stream = false, include_usage = false;
  std::unique_ptr<Wording> wording;
};

/// What both endpoints have in common of a request: sampling, limits, stops, the model and its skill, streaming.
/// `default_tokens`: of an answer for which no limit is given.
StatusOr<Ask> parse_common(const Fields& fields, const ServedModel& model, uint64_t default_tokens);

/// Checks the prompt against the context and bounds the answer by what is left of it.
Status fit_context(Request& request, const ServedModel& model);

/// "stop", "length", or "cancelled" for what no client waits for any more.
const char* finish_reason(const Finish& finish);
Json usage_json(const Finish& finish);
/// A new identifier: the prefix and 24 random characters.
std::string new_id(const char* prefix);

StatusOr<Ask> parse_chat(const Json& body, const ServedModel& model);
StatusOr<Ask> parse_completion(const Json& body, const ServedModel& model);

} // namespace cortiq::serve
