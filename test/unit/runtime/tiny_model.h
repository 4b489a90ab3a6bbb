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
  explicit TinyModel(float key_gain = 1);

  Status write(const std::string& path);
  /// Logits of every position, [tokens x kVocab].
  std::vector<double> reference(std::span<const uint32_t> tokens) const;

private:
  std::vector<float>& make(const std::string& name, uint64_t count, float scale, float center = 0);
  std::vector<double> product(const std::string& name, uint64_t rows, const std::vector<double>& x) const;
  std::vector<double> norm(const std::vector<double>& x, const std::string& weight) const;
  void build(ArtifactBuilder& builder) const;

  std::map<std::string, std::vector<float>> weights_;
  uint64_t random_ = 1;
};

} // namespace cortiq::test
