// Choosing a token from the largest logits alone, where that gives what the whole row would have given.

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/sampling/sampler.h"

namespace cortiq::runtime::sampling {
namespace {

constexpr float kGreedyBelow = 1e-6f;
// Shares that differ by less might change places where they are divided by their sum.
constexpr double kClose = 1e-11;
constexpr double kMargin = 1e-9;

struct Share {
  double share;
  uint32_t id;
};

} // namespace

bool Sampler::takes_top() const {
  // Only what lowers logits leaves those outside below what they are compared with.
  return options_.bias.empty() && options_.repetition_penalty >= 1 && options_.presence_penalty >= 0 &&
         options_.frequency_penalty >= 0;
}

TopAsk Sampler::ask_top() const {
  return {std::max(options_.temperature, kGreedyBelow), vocab_limit_};
}

std::optional<uint32_t> Sampler::sample_top(const TopLogits& top) {
  if (!takes_top() || top.ids.empty() || !std::isfinite(top.largest))
    return std::nullopt;
  std::vector<uint32_t> past; // sorted: those whose logits are lowered
  if (options_.repetition_penalty != 1 || options_.presence_penalty != 0 || options_.frequency_penalty != 0) {
    const size_t window =
        options_.penalty_window == 0 ? past_.size() : std::min<size_t>(past_.size(), options_.penalty_window);
    past.assign(past_.end() - static_cast<std::ptrdiff_t>(window), past_.end());
    std::erase_if(past, [&](uint32_t id) { return id >= vocab_limit_; });
    std::ranges::sort(past);
  }
  const double temperature = std::max(options_.temperature, kGreedyBelow);
  std::vector<std::pair<float, uint32_t>> found; // penalized
  double lowered = 0;                            // what the sum loses, relative to top.largest
  size_t outside = options_.suppress.size();
  for (size_t i = 0; i < past.size(); ++i)
    outside += i == 0 || past[i] != past[i - 1] ? 1 : 0;
  for (size_t i = 0; i < top.ids.size(); ++i) {
    const uint32_t id = top.ids[i];
    float logit = top.values[i];
    if (id >= vocab_limit_ || logit == -std::numeric_limits<float>::infinity())
      continue;
    const auto share = [&](float x) { return std::exp((static_cast<double>(x) - top.largest) / temperature); };
    const double before = share(logit);
    if (std::ranges::find(options_.suppress, id) != options_.suppress.end()) {
      lowered += before;
      continue;
    }
    const auto [first, last] = std::ranges::equal_range(past, id);
    if (const auto count = static_cast<uint32_t>(last - first); count != 0) {
      logit = logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
      logit -= options_.presence_penalty + options_.frequency_penalty * static_cast<float>(count);
      lowered += before - share(logit);
      --outside;
    }
    found.push_back({logit, id});
  }
  if (found.empty())
    return std::nullopt;
  const auto best = std::ranges::max(found); // of equal logits the highest id
  if (!(best.first > top.rest))
    return std::nullopt;
  if (options_.temperature < kGreedyBelow)
    return best.second;

  const auto share_of = [&](float logit) {
    return std::exp((static_cast<double>(logit) - best.first) / options_.temperature);
  };
  const double rest = share_of(top.rest);
  std::vector<Share> shares;
  for (const auto& [logit, id] : found)
    if (const double share = share_of(logit); share > 0 && share >= options_.min_p)
      shares.push_back({share, id});
  std::ranges::sort(
      shares, [](const Share& a, const Share& b) { return a.share != b.share ? a.share > b.share : a.id < b.id; });
  for (size_t i = 1; i < shares.size(); ++i)
    if (shares[i].share != shares[i - 1].share && shares[i - 1].share - shares[i].share < kClose * shares[i].share)
      return std::nullopt;
  if (options_.top_k != 0 && shares.size() >= options_.top_k) {
    const double least = shares[options_.top_k - 1].share;
    std::erase_if(shares, [least](const Share& s) { return s.share < least; });
    if (!(least > rest))
      return std::nullopt;
  } else if (rest >= options_.min_p && rest > 0) {
    return std::nullopt; // what is outside might belong here
  }

  // The sum over the whole row is known within bounds; both have to keep the same ids.
  const double scale = std::exp((static_cast<double>(top.largest) - best.first) / options_.temperature);
  const double middle = (top.sum - lowered) * scale, error = top.sum * TopLogits::kSumError * scale;
  if (options_.top_p < 1) {
    const double low = middle - error - static_cast<double>(outside) * rest, high = middle + error;
    if (!(low > 0) || !std::isfinite(high))
      return std::nullopt;
    const auto kept = [&](double sum, double margin) {
      double reached = 0;
      size_t count = 0;
      while (count < shares.size() && reached < options_.top_p + margin)
        reached += shares[count++].share / sum;
      return count;
    };
    const size_t count = kept(low, -kMargin);
    if (count != kept(high, kMargin))
      return std::nullopt;
    shares.resize(count);
  }
  if (shares.empty())
    return std::nullopt;
  std::ranges::sort(shares, {}, &Share::id);
  double sum = 0;
  for (const Share& s : shares)
    sum += s.share;
  SplitMix64 random = random_; // drawn for good only when the choice is certain
  const double threshold = random.uniform() * sum;
  double reached = 0;
  for (const Share& s : shares) {
    reached += s.share;
    if (std::abs(reached - threshold) < kMargin * sum && shares.size() > 1)
      return std::nullopt;
    if (reached > threshold) {
      random_ = random;
      return s.id;
    }
  }
  return std::nullopt;
}

} // namespace cortiq::runtime::sampling
