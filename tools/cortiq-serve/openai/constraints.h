#pragma once

// Schemas, grammars and expressions that requests bring, compiled for the model's vocabulary.

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include "formats/status.h"
#include "runtime/text/constraint.h"

namespace cortiq::serve {

/// Compiles them, few at a time, and keeps the latest. Thread-safe.
class Constraints {
public:
  /// `count`: ids below it may be chosen. `ends`: those that end an answer.
  Constraints(runtime::text::Tokenizer tokenizer, uint32_t count, std::vector<uint32_t> ends)
      : tokenizer_(std::move(tokenizer)), count_(count), ends_(std::move(ends)) {}

  /// For one answer; another one needs its own.
  StatusOr<std::shared_ptr<runtime::TokenConstraint>> make(runtime::text::Notation notation, const std::string& source);

  /// Whether make() would succeed; nothing is kept.
  Status check(runtime::text::Notation notation, const std::string& source);

private:
  using Constraint = runtime::text::Constraint;
  struct Kept {
    runtime::text::Notation notation;
    std::string source;
    std::shared_ptr<const Constraint> fresh; ///< as it was compiled
  };

  StatusOr<runtime::text::Vocabulary> vocabulary();
  std::shared_ptr<const Constraint> find(runtime::text::Notation notation, const std::string& source);

  const runtime::text::Tokenizer tokenizer_;
  const uint32_t count_;
  const std::vector<uint32_t> ends_;
  std::counting_semaphore<> compiling_{2};
  std::mutex mutex_;
  std::optional<runtime::text::Vocabulary> vocabulary_; ///< made for the first
  std::list<Kept> kept_;                                ///< the latest first
};

} // namespace cortiq::serve
