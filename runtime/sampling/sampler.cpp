#include "runtime/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cortiq::runtime::sampling {
namespace {

constexpr float kGreedyBelow = 1e-6f;
constexpr float kExcluded = -std::numeric_limits<float>::infinity();

// Values that are compared side by side, in vectors.
constexpr size_t kLanes = 16;

/// The largest value that is a number; minus infinity when there is none.
float largest_of(std::span<const float> x) {
  float most[kLanes];
  std::fill_n(most, kLanes, kExcluded);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes)
    for (size_t j = 0; j < kLanes; ++j)
      most[j] = x[i + j] > most[j] ? x[i + j] : most[j];
  for (; i < x.size(); ++i)
    most[0] = x[i] > most[0] ? x[i] : most[0];
  return *std::max_element(most, most + kLanes);
}

/// Whether each value is below infinity, which a NaN is not.
bool below_infinity(std::span<const float> x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  int32_t above[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes)
    for (size_t j = 0; j < kLanes; ++j)
      above[j] |= x[i + j] < kInfinity ? 0 : 1;
  for (; i < x.size(); ++i)
    above[0] |= x[i] < kInfinity ? 0 : 1;
  return std::all_of(above, above + kLanes, [](int32_t any) { return any == 0; });
}

/// The highest id of the largest value; 0 when there is no number.
uint32_t argmax(std::span<const float> x) {
  const float most = largest_of(x);
  size_t id = x.size();
  while (id > 1 && x[id - 1] != most)
    --id;
  return static_cast<uint32_t>(std::max<size_t>(id, 1) - 1);
}

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
  if (!below_infinity(logits))
    return refusal(logits);
  const std::span<const float> allowed = allow(logits);
  if (allowed.empty())
    return invalid("there are no logits to choose a token from");
  const uint32_t best = argmax(allowed);
  if (allowed[best] == kExcluded)
    return invalid("every token is suppressed or has a logit of minus infinity, so none can be chosen");
  if (options_.temperature < kGreedyBelow)
    return best;
  if (allowed.data() != logits_.data())
    logits_.assign(allowed.begin(), allowed.end());
  soften();
  keep_top_k();
  keep_top_p();
  // The filters of valid options always leave the most likely token; rounding at their edges might not.
  return candidates_.empty() ? best : draw();
}

std::optional<uint32_t> Sampler::likeliest(std::span<const float> logits) {
  const std::span<const float> allowed = allow(logits);
  if (allowed.empty())
    return std::nullopt;
  const uint32_t best = argmax(allowed);
  return std::isfinite(allowed[best]) ? std::optional(best) : std::nullopt;
}

Status Sampler::refusal(std::span<const float> logits) {
  const auto worst =
      static_cast<size_t>(std::find_if(logits.begin(), logits.end(),
                                       [](float value) { return !(value < std::numeric_limits<float>::infinity()); }) -
                          logits.begin());
  return invalid("the logit of token " + std::to_string(worst) + " is " +
                 (std::isnan(logits[worst]) ? "NaN" : "infinite") +
                 "; the model or a kernel overflowed, so no token can be chosen");
}

/// The ids that may be chosen, with their penalties: in logits_, or as they came where nothing changes them.
std::span<const float> Sampler::allow(std::span<const float> logits) {
  const size_t count = std::min<size_t>(logits.size(), vocab_limit_);
  if (options_.suppress.empty() && options_.bias.empty() && !penalizes())
    return logits.first(count);
  logits_.assign(logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(count));
  for (uint32_t id : options_.suppress)
    if (id < count)
      logits_[id] = kExcluded;
  for (const auto& [id, value] : options_.bias)
    if (id < count)
      logits_[id] += value;
  if (penalizes())
    penalize();
  return logits_;
}

bool Sampler::penalizes() const {
  return options_.repetition_penalty != 1 || options_.presence_penalty != 0 || options_.frequency_penalty != 0;
}

void Sampler::penalize() {
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

// Softmax with temperature, and min-p, which needs no sum: p / p_max is the exponential itself.
void Sampler::soften() {
  const float largest = largest_of(logits_);
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
