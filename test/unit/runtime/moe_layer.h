#pragma once

// A mixture of experts for tests: its weights as floats, an artifact of nothing else, and what it should compute.

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "formats/status.h"
#include "test/unit/runtime/artifact_builder.h"

namespace cortiq::test {

using artifact::Scoring;

inline constexpr uint64_t kMoeBatch = 24;

/// A layer's shape.
struct MoeCase {
  uint64_t choices, hidden;
  std::vector<uint64_t> widths; ///< one an expert
  Scoring scoring = Scoring::Softmax;
  bool normalize = false, bias = false, scales = false, shared = false, shared_gate = false, residual = false,
       biases = false;
  uint64_t groups = 1, groups_used = 1;
  double scale = 1;
  uint64_t closed = 0;    ///< experts whose logits are far below all others
  bool over_plan = false; ///< the products of gate are laid over the plan, as no compiler does
};

/// The layer's weights as floats, the artifact made of them, and what it should compute.
class MoeLayer {
public:
  using Row = std::vector<double>;

  explicit MoeLayer(const MoeCase& c);

  /// `early`: gates may be made where their rows are; else their buffer lies over what the rows are made of.
  Status write(const std::string& path, bool early = false);
  Row reference(const float* x) const;
  /// Random activations of `tokens` tokens.
  std::vector<float> input(uint64_t tokens);

private:
  static constexpr uint64_t kShared = 19;

  void make(const std::string& name, uint64_t count);
  Row product(const std::string& name, const Row& x) const;
  void add(Row& y, const std::string& name) const;
  Row block(const std::string& gate, const std::string& up, const std::string& down, const Row& x,
            const std::string& expert) const;
  std::vector<uint64_t> choose(const Row& key) const;

  MoeCase c_;
  uint64_t experts_;
  std::map<std::string, std::vector<float>> weights_;
  std::mt19937 random_{7};
  std::normal_distribution<float> normal_;
};

} // namespace cortiq::test
