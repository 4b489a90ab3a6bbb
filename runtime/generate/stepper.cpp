#include "runtime/generate/stepper.h"

#include <algorithm>
#include <chrono>

namespace cortiq::runtime {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace

Stepper::Stepper(Engine& engine, sampling::Sampler& sampler, Speculation mode)
    : engine_(engine), sampler_(sampler), policy_(engine.can_draft() ? mode : Speculation::kOff) {}

Stepper::~Stepper() {
  take_back();
  engine_.keep_drafts(false);
}

void Stepper::take_back() {
  if (guess_)
    engine_.rewind(engine_.position() - 1);
  guess_.reset();
}

StatusOr<std::span<const float>> Stepper::prompt(std::span<const uint32_t> tokens,
                                                 const std::function<bool()>& cancelled) {
  engine_.keep_drafts(policy_.keeps());
  if (!cancelled)
    return engine_.forward(tokens, false);
  std::span<const float> logits;
  while (!tokens.empty()) {
    if (cancelled())
      return std::span<const float>();
    const size_t count = std::min<size_t>(tokens.size(), std::max<uint64_t>(1, engine_.preferred_batch()));
    CORTIQ_ASSIGN_OR_RETURN(logits, engine_.forward(tokens.first(count), false));
    tokens = tokens.subspan(count);
  }
  return logits;
}

StatusOr<std::span<const float>> Stepper::again(std::span<const uint32_t> tokens) {
  engine_.keep_drafts(policy_.keeps());
  std::span<const float> logits;
  for (const uint32_t token : tokens) {
    CORTIQ_ASSIGN_OR_RETURN(logits, engine_.append(token));
  }
  return logits;
}

StatusOr<std::span<const float>> Stepper::next(uint32_t id, uint64_t wanted) {
  if (guess_) {
    const bool accepted = *guess_ == id;
    ++counts_.guessed;
    counts_.accepted += accepted ? 1 : 0;
    policy_.guessed(seconds_, accepted);
    if (accepted) {
      guess_.reset();
      return behind_;
    }
    take_back();
  }
  engine_.keep_drafts(policy_.keeps());
  const Clock::time_point start = Clock::now();
  // A guess is worth something if a token after the next one is wanted, and there is room for it.
  if (policy_.wants() && wanted > 1 && engine_.max_context() - engine_.position() > 1)
    if (const std::optional<uint32_t> guess = guess_after(id)) {
      CORTIQ_ASSIGN_OR_RETURN(const std::span<const float> rows, engine_.verify(id, *guess));
      guess_ = guess;
      behind_ = rows.subspan(engine_.vocab());
      seconds_ = seconds_since(start);
      return rows.first(engine_.vocab());
    }
  CORTIQ_ASSIGN_OR_RETURN(const std::span<const float> logits, engine_.append(id));
  policy_.plain(seconds_since(start));
  return logits;
}

std::optional<uint32_t> Stepper::guess_after(uint32_t id) {
  const std::span<const float> logits = engine_.draft(id);
  return logits.empty() ? std::nullopt : sampler_.likeliest(logits);
}

} // namespace cortiq::runtime
