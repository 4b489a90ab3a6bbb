#pragma once

// Choosing the next token from logits. The chain, in order: suppressed ids, bias, repetition penalty, presence and
// frequency penalty, temperature, softmax, min-p, top-k, top-p, draw.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/status.h"
#include "runtime/top_logits.h"

namespace cortiq::runtime::sampling {

struct SamplingOptions {
  float temperature = 0.7f;        ///< below 1e-6: the largest logit after the penalties (greedy)
  uint32_t top_k = 40;             ///< keep the k most likely, ties with the last of them too; 0: all
  float top_p = 0.9f;              ///< keep the most likely until their sum reaches this; 1: all
  float min_p = 0.05f;             ///< drop what is below this share of the most likely; 0: nothing
  float repetition_penalty = 1.1f; ///< of ids in the past: positive logits divided, others multiplied; 1: none
  float presence_penalty = 0.0f;   ///< subtracted from the logits of ids in the past
  float frequency_penalty = 0.0f;  ///< subtracted as often as the id is in the past
  uint32_t penalty_window = 0;     ///< how many of the last ids are the past; 0: all
  uint64_t seed = 0;
  std::vector<uint32_t> suppress;               ///< ids never chosen
  std::vector<std::pair<uint32_t, float>> bias; ///< added to the logits of these ids, before all else

  /// Greedy decoding without penalties.
  static SamplingOptions greedy();
  /// Refuses values outside their range, naming option and value.
  Status validate() const;
};

/// SplitMix64; the same seed gives the same draws everywhere.
class SplitMix64 {
public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// As if next() had been called so often.
  void skip(uint64_t count) { state_ += count * kStep; }
  /// In [0, 1), 24 bits.
  double uniform() { return static_cast<double>(next() >> 40) / 16777216.0; }

private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;
  uint64_t state_;
};

/// The chain with its generator and the ids seen so far. Not thread-safe; allocates only while the past grows.
class Sampler {
public:
  /// `options` must be valid. Ids from `vocab_limit` on have no text and are never chosen.
  Sampler(const SamplingOptions& options, uint32_t vocab_limit);

  /// Adds ids to the past: the prompt's, and each chosen one.
  void observe(std::span<const uint32_t> ids);
  void observe(uint32_t id) { observe(std::span(&id, 1)); }

  /// Random numbers taken so far; with skip() another sampler goes on behind them.
  uint64_t draws() const { return draws_; }
  void skip(uint64_t draws) {
    random_.skip(draws);
    draws_ += draws;
  }

  /// Chooses the next id. Equal largest logits: the highest id. A row with a NaN or +inf, and one that leaves no id to
  /// choose, is a failure that names the id.
  StatusOr<uint32_t> sample(std::span<const float> logits);

  /// Whether options as these can do with the largest logits alone.
  bool takes_top() const;
  TopAsk ask_top() const;
  /// The id that sample() would choose from the whole row; none, and nothing is drawn, where `top` does not say for
  /// certain.
  std::optional<uint32_t> sample_top(const TopLogits& top);

  /// The most likely id of `logits`, which may be of any quality, after suppressed ids and penalties. Draws nothing.
  std::optional<uint32_t> likeliest(std::span<const float> logits);

private:
  struct Candidate {
    double probability;
    uint32_t id;
  };

  std::span<const float> allow(std::span<const float> logits);
  bool penalizes() const;
  void penalize();
  static Status refusal(std::span<const float> logits);
  void soften();
  void keep_top_k();
  void keep_top_p();
  uint32_t draw();

  SamplingOptions options_;
  uint32_t vocab_limit_;
  SplitMix64 random_;
  uint64_t draws_ = 0;
  std::vector<uint32_t> past_;
  std::vector<float> logits_;
  std::vector<uint32_t> counts_; ///< of the ids in the past
  std::vector<Candidate> candidates_;
};

} // namespace cortiq::runtime::sampling
