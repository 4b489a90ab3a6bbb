#pragma once

// Answers that have to follow a JSON schema, a grammar or a regular expression.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/status.h"
#include "runtime/generate/token_constraint.h"
#include "runtime/text/tokenizer.h"

struct CortiqTextConstraint;
struct CortiqTextVocabulary;

namespace cortiq::runtime::text {

/// What a constraint is written in.
enum class Notation {
  kSchema,      ///< a JSON schema; what of it cannot be followed is refused
  kLooseSchema, ///< a JSON schema; what of it cannot be followed is ignored
  kLark,        ///< a grammar, as the llguidance library reads Lark
  kRegex,       ///< a regular expression that the whole text matches
};

class Constraint;

/// A tokenizer's entries, prepared for constraints: made once a model, in some tenths of a second for large ones.
/// Copies share it; its functions may be called from several threads.
class Vocabulary {
public:
  /// `count`: ids below it may be chosen. `ends`: those that end a text.
  static StatusOr<Vocabulary> create(const Tokenizer& tokenizer, uint32_t count, std::span<const uint32_t> ends);

  /// Compiles `source`. Fails in one sentence for what is wrong (of a schema with the place in it), for what is larger
  /// than the bounds on its size and work, and for what no text can follow.
  StatusOr<std::unique_ptr<Constraint>> constrain(Notation notation, std::string_view source) const;

private:
  explicit Vocabulary(std::shared_ptr<const CortiqTextVocabulary> handle, uint32_t count)
      : handle_(std::move(handle)), count_(count) {}
  std::shared_ptr<const CortiqTextVocabulary> handle_;
  uint32_t count_;
};

/// The state of one answer under a constraint, from its first token on.
class Constraint : public TokenConstraint {
public:
  /// One more in the same state.
  StatusOr<std::unique_ptr<Constraint>> copy() const;

  /// Leaves no id when the constraint's bounds on work are exceeded; failure() then says so.
  void mask(std::span<float> logits) override;
  bool accept(uint32_t id) override;
  const Status& failure() const { return failure_; }

private:
  friend class Vocabulary;
  struct Free {
    void operator()(CortiqTextConstraint* constraint) const;
  };
  using Handle = std::unique_ptr<CortiqTextConstraint, Free>;
  Constraint(Handle handle, uint32_t count) : handle_(std::move(handle)), count_(count), words_((count + 31) / 32) {}

  Handle handle_;
  uint32_t count_;
  std::vector<uint32_t> words_; ///< one bit an id
  Status failure_;
};

} // namespace cortiq::runtime::text
