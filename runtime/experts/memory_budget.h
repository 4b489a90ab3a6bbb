#pragma once

// What --memory allows a process to hold, and who has which part of it.

#include <cstdint>
#include <mutex>
#include <utility>

#include "formats/status.h"

namespace cortiq::runtime {

class ExpertStore;

/// Divides a budget: the weights that are not experts first, then what sessions reserve, and the rest are places for
/// experts. Outside of it stand code, tables and heap: kSlack bounds them for the models in use today.
class MemoryBudget {
public:
  static constexpr uint64_t kSlack = uint64_t{128} << 20;

  /// `weights` bytes are always there. `experts` may be null: then there is nothing to give up.
  MemoryBudget(uint64_t total, uint64_t weights, ExpertStore* experts);

  uint64_t total() const { return total_; }
  /// Reserves `bytes` for a session or a blend. Fails when not even the least number of places for experts would be
  /// left.
  Status take(uint64_t bytes);
  void give_back(uint64_t bytes);

private:
  const uint64_t total_, weights_;
  ExpertStore* const experts_;
  std::mutex mutex_;
  uint64_t sessions_ = 0; ///< what was taken
};

/// A part of a budget, held as long as this lives; the budget has to live longer.
class BudgetShare {
public:
  BudgetShare() = default;
  BudgetShare(MemoryBudget& budget, uint64_t bytes) : budget_(&budget), bytes_(bytes) {}
  BudgetShare(BudgetShare&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
  BudgetShare& operator=(BudgetShare&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BudgetShare() {
    if (budget_)
      budget_->give_back(bytes_);
  }

private:
  MemoryBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

} // namespace cortiq::runtime
