#pragma once

// How well a model predicts a text, and how far its predictions lie from another model's.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "formats/status.h"
#include "runtime/engine.h"

namespace cortiq::runtime {

struct PerplexityOptions {
  /// Tokens a window, at least kLeastWindow; both engines must have room for them.
  uint64_t window = 512;
  /// Stands in place of every window's first token.
  std::optional<uint32_t> begin = std::nullopt;
};
inline constexpr uint64_t kLeastWindow = 4;

/// One model's predictions of the scored tokens, in nats a token.
struct TextScore {
  double mean_loss = 0;      ///< mean of -ln p(token)
  double standard_error = 0; ///< of mean_loss, the tokens taken as independent
  double perplexity() const;
  double perplexity_error() const { return standard_error * perplexity(); }
};

/// Kullback-Leibler divergence of the model's distributions from the reference's, in nats, over the scored tokens.
struct Divergence {
  double mean = 0, p99 = 0, max = 0;
  double top1_agreement = 0; ///< share of tokens for which both find the same id most likely
};

struct Evaluation {
  uint64_t windows = 0, tokens = 0; ///< tokens: those scored
  TextScore model;
  std::optional<TextScore> reference;
  /// Model's loss less the reference's, token by token: its perplexity() is the ratio of both perplexities, with an
  /// error far below that of either, for both read the same text.
  std::optional<TextScore> difference;
  std::optional<Divergence> divergence;
};

/// Called after each window.
using WindowProgress = std::function<void(uint64_t done, uint64_t windows)>;

/// Cuts `ids` into windows that do not overlap, runs each from an empty state and scores the tokens of its second half,
/// so that every scored token has at least half a window before it; ids after the last whole window are left out. With
/// `reference` both run on the same windows and are compared; their vocabularies must be equal.
/// Fails for less than one window, for logits that hold a NaN or an infinity above, and where an engine fails.
StatusOr<Evaluation> evaluate_text(Engine& model, Engine* reference, std::span<const uint32_t> ids,
                                   const PerplexityOptions& options, const WindowProgress& progress = nullptr);

} // namespace cortiq::runtime
