#include "runtime/evaluate/perplexity.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace cortiq::runtime {
namespace {

/// What the softmax of one row of logits needs: p(i) = exp(row[i] - top) / sum.
struct RowSums {
  float top = 0;
  uint64_t top_id = 0;
  double log_sum = 0; ///< ln sum exp(row[i] - top)
};

StatusOr<RowSums> sum_row(std::span<const float> row, uint64_t position) {
  RowSums out;
  out.top = row[0];
  for (uint64_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i]) || row[i] == INFINITY)
      return invalid("the logits at position " + std::to_string(position) + " are not numbers (id " +
                     std::to_string(i) + "): the model's weights or the arithmetic overflowed");
    if (row[i] > out.top) {
      out.top = row[i];
      out.top_id = i;
    }
  }
  if (out.top == -INFINITY)
    return invalid("the logits at position " + std::to_string(position) + " exclude every token");
  double sum = 0;
  for (const float x : row)
    sum += std::exp(static_cast<double>(x) - out.top);
  out.log_sum = std::log(sum);
  return out;
}

double loss(std::span<const float> row, const RowSums& sums, uint32_t id) {
  return sums.log_sum + sums.top - row[id];
}

/// sum p_ref (ln p_ref - ln p_model), where ln p = row[i] - top - log_sum.
double divergence(std::span<const float> reference, const RowSums& r, std::span<const float> model, const RowSums& m) {
  const double shift = (m.top + m.log_sum) - (r.top + r.log_sum);
  double sum = 0;
  for (uint64_t i = 0; i < reference.size(); ++i) {
    const double p = std::exp(static_cast<double>(reference[i]) - r.top - r.log_sum);
    if (p > 0) // 0 ln 0 is 0
      sum += p * (static_cast<double>(reference[i]) - model[i] + shift);
  }
  return std::max(sum, 0.0); // equal rows may round below
}

class Losses {
public:
  void add(double value) {
    sum_ += value;
    squares_ += value * value;
    ++count_;
  }
  TextScore score() const {
    const auto n = static_cast<double>(count_);
    const double mean = sum_ / n;
    const double variance = std::max(squares_ / n - mean * mean, 0.0);
    return {mean, count_ > 1 ? std::sqrt(variance / (n - 1)) : 0};
  }

private:
  double sum_ = 0, squares_ = 0;
  uint64_t count_ = 0;
};

class Comparison {
public:
  void add(double divergence, bool same_top) {
    values_.push_back(divergence);
    agreed_ += same_top;
  }
  Divergence result() {
    std::sort(values_.begin(), values_.end());
    Divergence out;
    for (const double v : values_)
      out.mean += v / static_cast<double>(values_.size());
    // Between the two values that surround the 99th percentile, linearly.
    const double at = 0.99 * static_cast<double>(values_.size() - 1);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, values_.size() - 1);
    const double share = at - static_cast<double>(below);
    out.p99 = share > 0 ? values_[below] * (1 - share) + values_[above] * share : values_[below];
    out.max = values_.back();
    out.top1_agreement = static_cast<double>(agreed_) / static_cast<double>(values_.size());
    return out;
  }

private:
  std::vector<double> values_;
  uint64_t agreed_ = 0;
};

class Evaluator {
public:
  Evaluator(Engine& model, Engine* reference) : model_(model), reference_(reference) {}

  /// Scores `window` from its middle on; it holds the ids to run, each also the answer to the one before.
  Status add_window(std::span<const uint32_t> window) {
    const uint64_t first = window.size() / 2; // the first position whose prediction counts
    const uint64_t batch = std::max<uint64_t>(1, model_.preferred_batch());
    CORTIQ_RETURN_IF_ERROR(start(model_, window.first(first)));
    if (reference_)
      CORTIQ_RETURN_IF_ERROR(start(*reference_, window.first(first)));
    // The last token predicts nothing that is in the window.
    for (uint64_t at = first; at + 1 < window.size();) {
      const uint64_t count = std::min(batch, window.size() - 1 - at);
      CORTIQ_RETURN_IF_ERROR(add_batch(window, at, count));
      at += count;
    }
    return {};
  }

  Evaluation result(uint64_t windows) {
    Evaluation out;
    out.windows = windows;
    out.tokens = tokens_;
    out.model = losses_.score();
    if (reference_) {
      out.reference = reference_losses_.score();
      out.difference = differences_.score();
      out.divergence = comparison_.result();
    }
    return out;
  }

private:
  static Status start(Engine& engine, std::span<const uint32_t> prefix) {
    engine.reset();
    return engine.forward(prefix, false).status();
  }

  Status add_batch(std::span<const uint32_t> window, uint64_t at, uint64_t count) {
    const uint64_t vocab = model_.vocab();
    CORTIQ_ASSIGN_OR_RETURN(const auto rows, model_.forward(window.subspan(at, count), true));
    std::span<const float> reference_rows;
    if (reference_) {
      CORTIQ_ASSIGN_OR_RETURN(reference_rows, reference_->forward(window.subspan(at, count), true));
    }
    for (uint64_t t = 0; t < count; ++t) {
      const auto row = rows.subspan(t * vocab, vocab);
      const uint32_t next = window[at + t + 1];
      CORTIQ_ASSIGN_OR_RETURN(const RowSums sums, sum_row(row, at + t));
      losses_.add(loss(row, sums, next));
      ++tokens_;
      if (!reference_)
        continue;
      const auto want = reference_rows.subspan(t * vocab, vocab);
      StatusOr<RowSums> wanted = sum_row(want, at + t);
      if (!wanted.ok())
        return wanted.status().with_prefix("the reference");
      const double reference_loss = loss(want, *wanted, next);
      reference_losses_.add(reference_loss);
      differences_.add(loss(row, sums, next) - reference_loss);
      comparison_.add(divergence(want, *wanted, row, sums), sums.top_id == wanted->top_id);
    }
    return {};
  }

  Engine& model_;
  Engine* reference_;
  Losses losses_, reference_losses_, differences_;
  Comparison comparison_;
  uint64_t tokens_ = 0;
};

} // namespace

double TextScore::perplexity() const {
  return std::exp(mean_loss);
}

StatusOr<Evaluation> evaluate_text(Engine& model, Engine* reference, std::span<const uint32_t> ids,
                                   const PerplexityOptions& options, const WindowProgress& progress) {
  if (options.window < kLeastWindow)
    return invalid("a context of " + std::to_string(options.window) + " tokens scores nothing; it needs " +
                   std::to_string(kLeastWindow));
  if (ids.size() < options.window)
    return invalid("the text has " + std::to_string(ids.size()) + " tokens, fewer than one context of " +
                   std::to_string(options.window) + "; take a longer text or a smaller --context");
  if (reference && reference->vocab() != model.vocab())
    return invalid("the reference has a vocabulary of " + std::to_string(reference->vocab()) + ", the model one of " +
                   std::to_string(model.vocab()) + ": their predictions cannot be compared");
  Evaluator evaluator(model, reference);
  const uint64_t windows = ids.size() / options.window;
  for (uint64_t w = 0; w < windows; ++w) {
    std::vector<uint32_t> window(ids.begin() + static_cast<ptrdiff_t>(w * options.window),
                                 ids.begin() + static_cast<ptrdiff_t>((w + 1) * options.window));
    // An id outside the vocabulary has no probability; the engine refuses it as input, and the last one is no input.
    if (window.back() >= model.vocab())
      return invalid("token id " + std::to_string(window.back()) + " is outside the vocabulary of " +
                     std::to_string(model.vocab()));
    if (options.begin)
      window.front() = *options.begin;
    CORTIQ_RETURN_IF_ERROR(evaluator.add_window(window));
    if (progress)
      progress(w + 1, windows);
  }
  return evaluator.result(windows);
}

} // namespace cortiq::runtime
