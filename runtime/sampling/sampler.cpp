#include "runtime/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cortiq::runtime::sampling {
namespace {

constexpr float kGreedyBelow = 1e-6f;
constexpr float kExcluded = -std::numeric_limits<float>::infinity();

Status out_of_range(const char* option, float value, const char* range) {
  return invalid(std::string(option) + " is " + std::to_string(value) + "; it has to be " + range);
}

} // namespace

SamplingOptions SamplingOptions::greedy() {
  SamplingOptions options;
  options.temperature = 0;
  options.repetition_penalty = 1;
  return options;
}

Status SamplingOptions::validate() const {
  // Written so that NaN fails as well.
  if (!(temperature >= 0 && temperature <= 1e4f))
    return out_of_range("temperature", temperature, "between 0 and 10000");
  if (!(top_p > 0 && top_p <= 1))
    return out_of_range("top-p", top_p, "above 0 and at most 1");
  if (!(min_p >= 0 && min_p <= 1))
    return out_of_range("min-p", min_p, "between 0 and 1");
  if (!(repetition_penalty > 0 && repetition_penalty <= 1e4f))
    return out_of_range("repetition penalty", repetition_penalty, "above 0 and at most 10000");
  if (!(std::abs(presence_penalty) <= 1e4f))
    return out_of_range("presence penalty", presence_penalty, "between -10000 and 10000");
  if (!(std::abs(frequency_penalty) <= 1e4f))
    return out_of_range("frequency penalty", frequency_penalty, "between -10000 and 10000");
  for (const auto& [id, value] : bias)
    if (!(std::abs(value) <= 1e4f))
      return out_of_range(("bias of token " + std::to_string(id)).c_str(), value, "between -10000 and 10000");
  return Status();
}

uint64_t SplitMix64::next() {
  state_ += kStep;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

Sampler::Sampler(const SamplingOptions& options, uint32_t vocab_limit)
    : options_(options), vocab_limit_(vocab_limit), random_(options.seed) {}

void Sampler::observe(std::span<const uint32_t> ids) {
  past_.insert(past_.end(), ids.begin(), ids.end());
}

StatusOr<uint32_t> Sampler::sample(std::span<const float> logits) {
  for (size_t id = 0; id < logits.size(); ++id)
    if (std::isnan(logits[id]) || logits[id] == std::numeric_limits<float>::infinity())
      return invalid("the logit of token " + std::to_string(id) + " is " +
                     (std::isnan(logits[id]) ? "NaN" : "infinite") +
                     "; the model or a kernel overflowed, so no token can be chosen");
  take(logits);
  if (logits_.empty())
    return invalid("there are no logits to choose a token from");
  uint32_t best = argmax();
  if (logits_[best] == kExcluded)
    return invalid("every token is suppressed or has a logit of minus infinity, so none can be chosen");
  if (options_.temperature < kGreedyBelow)
    return best;
  soften();
  keep_top_k();
  keep_top_p();
  // The filters of valid options always leave the most likely token; rounding at their edges might not.
  return candidates_.empty() ? best : draw();
}

std::optional<uint32_t> Sampler::likeliest(std::span<const float> logits) {
  take(logits);
  if (logits_.empty())
    return std::nullopt;
  const uint32_t best = argmax();
  return std::isfinite(logits_[best]) ? std::optional(best) : std::nullopt;
}

/// The ids that may be chosen, with their penalties.
void Sampler::take(std::span<const float> logits) {
  const size_t count = std::min<size_t>(logits.size(), vocab_limit_);
  logits_.assign(logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(count));
  for (uint32_t id : options_.suppress)
    if (id < count)
      logits_[id] = kExcluded;
  for (const auto& [id, value] : options_.bias)
    if (id < count)
      logits_[id] += value;
  penalize();
}

void Sampler::penalize() {
  if (options_.repetition_penalty == 1 && options_.presence_penalty == 0 && options_.frequency_penalty == 0)
    return;
  counts_.assign(logits_.size(), 0);
  size_t window = options_.penalty_window == 0 ? past_.size() : std::min<size_t>(past_.size(), options_.penalty_window);
  for (size_t i = past_.size() - window; i < past_.size(); ++i)
    if (past_[i] < counts_.size())
      ++counts_[past_[i]];
  for (size_t id = 0; id < counts_.size(); ++id) {
    if (counts_[id] == 0)
      continue;
    float& logit = logits_[id];
    logit = logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
    logit -= options_.presence_penalty + options_.frequency_penalty * static_cast<float>(counts_[id]);
  }
}

uint32_t Sampler::argmax() const {
  size_t best = 0;
  for (size_t id = 1; id < logits_.size(); ++id)
    if (logits_[id] >= logits_[best])
      best = id;
  return static_cast<uint32_t>(best);
}

// Softmax with temperature, and min-p, which needs no sum: p / p_max is the exponential itself.
void Sampler::soften() {
  float largest = *std::max_element(logits_.begin(), logits_.end());
  double sum = 0;
  candidates_.clear();
  for (size_t id = 0; id < logits_.size(); ++id) {
    double share = std::exp((static_cast<double>(logits_[id]) - largest) / options_.temperature);
    sum += share;
    if (share > 0 && share >= options_.min_p)
      candidates_.push_back({share, static_cast<uint32_t>(id)});
  }
  for (Candidate& candidate : candidates_)
    candidate.probability /= sum;
}

void Sampler::keep_top_k() {
  if (options_.top_k == 0 || candidates_.size() <= options_.top_k)
    return;
  auto last = candidates_.begin() + (options_.top_k - 1);
  std::nth_element(candidates_.begin(), last, candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.probability > b.probability; });
  double least = last->probability;
  std::erase_if(candidates_, [least](const Candidate& candidate) { return candidate.probability < least; });
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1)
    return;
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
  });
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && sum < options_.top_p)
    sum += candidates_[kept++].probability;
  candidates_.resize(kept);
}

uint32_t Sampler::draw() {
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  double sum = 0;
  for (const Candidate& candidate : candidates_)
    sum += candidate.probability;
  ++draws_;
  double threshold = random_.uniform() * sum;
  double reached = 0;
  for (const Candidate& candidate : candidates_) {
    reached += candidate.probability;
    if (reached > threshold)
      return candidate.id;
  }
  return candidates_.back().id;
}

} // namespace cortiq::runtime::sampling
