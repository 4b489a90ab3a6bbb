#pragma once

// A decoder of two layers with everything that the executor knows, as an artifact and as plain arithmetic in doubles.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "test/unit/runtime/artifact_builder.h"

namespace cortiq::test {

struct TinyModel {
  static constexpr uint64_t kHidden = 40, kHeads = 6, kKvHeads = 2, kHeadDim = 20, kFfn = 56, kVocab = 37;
  static constexpr uint64_t kPairs = 8; ///< 4 of 20 dimensions are not rotated
  static constexpr uint64_t kWindow = 70;
  static constexpr uint64_t kMaxContext = 150, kMaxBatch = 16;
  static constexpr float kEps = 1e-5f, kScoreCap = 20, kLogitCap = 30;

  /// Weights from a seed; `key_gain` multiplies the key projection of layer 1.
  explicit TinyModel(float key_gain = 1, uint64_t seed = 1);

  /// The weights that a skill replaces: matrices of both layers, norms, a bias and the embedding.
  static bool is_replaced(const std::string& name);
  /// The same model with `weights` summed in place of the replaced weights: pairs of a model and its weight.
  TinyModel mixed(std::span<const std::pair<const TinyModel*, float>> weights) const;
  /// Switches off every other neuron, and query head 1, of both layers, in the reference.
  void mask_half() { masked_ = true; }

  /// With `skills` ("s0", "s1", …, each a model whose replaced weights are the skill's) and two masks: "open", which
  /// switches nothing off and is the default, and "half", see mask_half().
  Status write(const std::string& path, std::span<const TinyModel> skills = {});
  /// Logits of every position, [tokens x kVocab].
  std::vector<double> reference(std::span<const uint32_t> tokens) const;
  /// What the head reads at every position, [tokens x kHidden].
  std::vector<double> hidden_reference(std::span<const uint32_t> tokens) const;

  std::vector<std::string> targets; ///< of the artifact, where it is to hold several
  Numbers numbers = Numbers::kF32;  ///< of the artifact

private:
  std::vector<float>& make(const std::string& name, uint64_t count, float scale, float center = 0);
  std::vector<double> product(const std::string& name, uint64_t rows, const std::vector<double>& x) const;
  std::vector<double> norm(const std::vector<double>& x, const std::string& weight) const;
  void build(ArtifactBuilder& builder) const;
  void add_skills(ArtifactBuilder& builder, std::span<const TinyModel> skills) const;

  std::map<std::string, std::vector<float>> weights_;
  uint64_t random_ = 1;
  bool masked_ = false;
};

/// The error of `got` in parts of `want`, root mean squares both.
double relative_error(std::span<const float> got, std::span<const double> want);

} // namespace cortiq::test
