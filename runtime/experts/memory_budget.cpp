#include "runtime/experts/memory_budget.h"

#include <string>

#include "formats/checked_math.h"
#include "runtime/experts/expert_store.h"

namespace cortiq::runtime {
namespace {

constexpr uint64_t kMebi = 1 << 20;

std::string mebibytes(uint64_t bytes) {
  return std::to_string(formats::ceil_div(bytes, kMebi)) + " MiB";
}

} // namespace

MemoryBudget::MemoryBudget(uint64_t total, uint64_t weights, ExpertStore* experts)
    : total_(total), weights_(weights), experts_(experts) {}

Status MemoryBudget::take(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const uint64_t places = experts_ ? experts_->least_bytes() : 0;
  const uint64_t least = weights_ + sessions_ + bytes + places;
  if (least > total_)
    return unsupported("--memory allows " + mebibytes(total_) + ", but " + mebibytes(weights_) +
                       " of weights stay in memory, cache, work space and blends take " + mebibytes(sessions_ + bytes) +
                       (experts_ ? " and the smallest set of experts " + mebibytes(places) : "") +
                       ": the least that works is --memory " + std::to_string(formats::ceil_div(least, kMebi)) +
                       "M (a smaller --max-context needs less)");
  sessions_ += bytes;
  if (experts_)
    experts_->set_limit(total_ - weights_ - sessions_);
  return {};
}

void MemoryBudget::give_back(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  sessions_ -= bytes;
  if (experts_)
    experts_->set_limit(total_ - weights_ - sessions_);
}

} // namespace cortiq::runtime
