#pragma once

// One token after the other through an engine, or two at once where the second can be guessed.

#include <functional>
#include <optional>
#include <span>

#include "runtime/engine.h"
#include "runtime/generate/draft_policy.h"
#include "runtime/sampling/sampler.h"

namespace cortiq::runtime {

/// Guesses made, and those that were the token chosen.
struct DraftCounts {
  uint64_t guessed = 0, accepted = 0;
};

/// Gives the logits behind each chosen token. They, and so the tokens, are those of steps of one token each: a guess is
/// checked in the step of the token before it, and what follows a wrong one is taken back. The engine is as if none had
/// been made once the stepper is gone.
class Stepper {
public:
  /// `sampler` only says which id of a guess is the most likely.
  Stepper(Engine& engine, sampling::Sampler& sampler, Speculation mode);
  ~Stepper();
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  /// Runs the prompt; the logits behind its last token. `cancelled`, where there is one, is asked before every batch;
  /// once it says so nothing more is run, and there are no logits.
  StatusOr<std::span<const float>> prompt(std::span<const uint32_t> tokens, const std::function<bool()>& cancelled);
  /// The same for tokens that were generated before, at least one.
  StatusOr<std::span<const float>> again(std::span<const uint32_t> tokens);
  /// The logits behind `id`, which follows what came before. `wanted`: how many more tokens may be chosen after it;
  /// valid until the next call.
  StatusOr<std::span<const float>> next(uint32_t id, uint64_t wanted);

  /// Tokens whose logits were handed out: position() of an engine that never guesses.
  uint64_t position() const { return engine_.position() - (guess_ ? 1 : 0); }
  const DraftCounts& counts() const { return counts_; }

private:
  std::optional<uint32_t> guess_after(uint32_t id);
  void take_back();

  Engine& engine_;
  sampling::Sampler& sampler_;
  DraftPolicy policy_;
  DraftCounts counts_;
  std::optional<uint32_t> guess_; ///< in the engine, not handed out yet
  std::span<const float> behind_; ///< the logits behind it
  double seconds_ = 0;            ///< of the step that checks it
};

} // namespace cortiq::runtime
