#pragma once

// How what was generated is put into an endpoint's JSON.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cortiq-serve/engine/job.h"
#include "tools/cortiq-serve/openai/fields.h"
#include "tools/cortiq-serve/openai/served_model.h"

namespace cortiq::serve {

/// One choice of an answer, complete.
struct Answered {
  std::string text;
  std::vector<TokenRecord> tokens;
  Finish finish;
};

/// Of one answer with all its choices. Chunks of a choice are asked for in their order.
class Wording {
public:
  virtual ~Wording() = default;
  /// How likely what a choice begins with is, where Ask::score_prompts asks for it; before all else.
  virtual void prompt(size_t choice, std::vector<TokenRecord> tokens) {
    (void)choice;
    (void)tokens;
  }
  /// Chunks of a stream: before the first piece, of a piece, and at the end; each may be none.
  virtual std::vector<Json> begin(size_t choice) = 0;
  virtual std::vector<Json> piece(size_t choice, const Piece& piece) = 0;
  virtual std::vector<Json> end(size_t choice, const Finish& finish) = 0;
  /// The chunk behind all of them, where it was asked for.
  virtual Json usage(const std::vector<Finish>& finishes) = 0;
  /// The whole answer at once.
  virtual Json whole(const std::vector<Answered>& choices) = 0;
};

/// "stop", "length", or "cancelled" for what no client waits for any more.
const char* finish_reason(const Finish& finish);
/// `same_prompt`: the choices answer one prompt, which counts once.
Json usage_json(const std::vector<Finish>& finishes, bool same_prompt);
std::vector<Finish> finishes_of(const std::vector<Answered>& choices);
/// Seconds since 1970.
int64_t now_seconds();
/// A new identifier: the prefix and 24 random characters.
std::string new_id(const char* prefix);

} // namespace cortiq::serve
