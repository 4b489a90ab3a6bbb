#pragma once

// A decoder of two layers as IR text, with every feature that a pass may meet.

#include <string>

namespace cortiq::cmf {

struct SmallDecoder {
  bool biases = false;
  bool headNorms = false;
  bool sandwich = false;
  bool tied = false;
  bool window = false;
};

inline constexpr int kSmallVocab = 24;

/// The module's text, unfused. Projections have differing codecs (q8_0, q4_0, f16).
std::string smallDecoder(const SmallDecoder& features);

} // namespace cortiq::cmf
