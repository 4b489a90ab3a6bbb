#include "tools/cortiq-serve/openai/constraints.h"

#include <algorithm>

namespace cortiq::serve {
namespace {

constexpr size_t kMostKept = 16;

/// While it lives, one more is being compiled.
class Turn {
public:
  explicit Turn(std::counting_semaphore<>& semaphore) : semaphore_(semaphore) { semaphore_.acquire(); }
  ~Turn() { semaphore_.release(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

private:
  std::counting_semaphore<>& semaphore_;
};

} // namespace

StatusOr<std::shared_ptr<runtime::TokenConstraint>> Constraints::make(runtime::text::Notation notation,
                                                                      const std::string& source) {
  std::shared_ptr<const Constraint> fresh = find(notation, source);
  if (!fresh) {
    const Turn turn(compiling_);
    CORTIQ_ASSIGN_OR_RETURN(const runtime::text::Vocabulary words, vocabulary());
    CORTIQ_ASSIGN_OR_RETURN(fresh, words.constrain(notation, source));
    const std::lock_guard lock(mutex_);
    kept_.push_front({notation, source, fresh});
    if (kept_.size() > kMostKept)
      kept_.pop_back();
  }
  CORTIQ_ASSIGN_OR_RETURN(std::shared_ptr<runtime::TokenConstraint> out, fresh->copy());
  return out;
}

Status Constraints::check(runtime::text::Notation notation, const std::string& source) {
  const Turn turn(compiling_);
  CORTIQ_ASSIGN_OR_RETURN(const runtime::text::Vocabulary words, vocabulary());
  return words.constrain(notation, source).status();
}

StatusOr<runtime::text::Vocabulary> Constraints::vocabulary() {
  const std::lock_guard lock(mutex_);
  if (!vocabulary_) {
    CORTIQ_ASSIGN_OR_RETURN(vocabulary_, runtime::text::Vocabulary::create(tokenizer_, count_, ends_));
  }
  return *vocabulary_;
}

std::shared_ptr<const Constraints::Constraint> Constraints::find(runtime::text::Notation notation,
                                                                 const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& k) { return k.notation == notation && k.source == source; });
  if (found == kept_.end())
    return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return found->fresh;
}

} // namespace cortiq::serve
