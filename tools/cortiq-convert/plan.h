#pragma once

// Which codec each tensor of the result gets.

#include <optional>
#include <string>
#include <vector>

#include "formats/encode/encoder.h"
#include "formats/encode/keep.h"
#include "tools/cortiq-convert/source_model.h"

namespace cortiq::convert {

/// A codec for the tensors whose names match: `*` stands for any text, `?` for any character.
struct TensorQuant {
  std::string pattern;
  const formats::Codec* codec;
};

struct QuantOptions {
  const formats::Codec* quant = nullptr;  ///< of --quant
  std::vector<TensorQuant> tensor_quants; ///< of --tensor-quant, the last that matches counts
};

/// What is done with one tensor: exactly one of `keeper` and `encoder` is there.
struct Target {
  const SourceTensor* source = nullptr;
  const formats::Codec* codec = nullptr; ///< of the result
  const formats::Keeper* keeper = nullptr;
  const formats::Encoder* encoder = nullptr;
  bool lossless = false; ///< the result decodes to the same bits
};

/// Parses "PATTERN=CODEC", or a codec's name alone, as the options take them; a codec without encoder is refused with
/// the list of those that have one.
StatusOr<TensorQuant> parse_tensor_quant(const std::string& text);
StatusOr<const formats::Codec*> parse_quant(const std::string& text);

/// Vectors keep their values. A matrix keeps its codes if a CMF codec can hold them, unless an option names another
/// codec for it: --tensor-quant always does, --quant for matrices of plain numbers and for those that cannot be kept.
/// Fails when some matrix cannot be kept and nothing says what it becomes; the message lists their codecs.
/// Notes on choices go to `warnings`.
StatusOr<std::vector<Target>> plan_targets(const SourceModel& model, const QuantOptions& options, unsigned threads,
                                           std::vector<std::string>& warnings);

/// header.quant_type for these targets.
std::string quant_type(const std::vector<Target>& targets);

} // namespace cortiq::convert
