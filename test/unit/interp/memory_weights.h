#pragma once

// Weights for tests: values stated in the test, or drawn from the weight's name.

#include <map>
#include <string>
#include <vector>

#include "dialects/CMF/Interp/WeightSource.h"

namespace cortiq::cmf {

class MemoryWeights : public WeightSource {
public:
  /// States the values of an f32 weight, for the file's tensor (before #cmf.rows).
  void state(const std::string& name, std::vector<float> values);

  /// Stated values, or valid pseudorandom blocks of the weight's codec that depend on its name alone.
  StatusOr<std::span<const uint8_t>> payload(WeightOp op) override;

private:
  std::map<std::string, std::vector<uint8_t>> payloads_;
};

} // namespace cortiq::cmf
