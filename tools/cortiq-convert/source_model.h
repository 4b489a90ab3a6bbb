#pragma once

// A model to be converted, in CMF's terms: canonical names, header fields, tokenizer; and where its weights lie.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::convert {

/// One tensor of the result. Its rows are rows of a tensor of the source, perhaps in another order.
struct SourceTensor {
  std::string name;            ///< canonical (CMF specification 3.1)
  std::vector<uint64_t> shape; ///< of the result
  const formats::Tensor* tensor = nullptr;
  uint64_t first_row = 0; ///< of `tensor`; for a vector the first value
  /// Rows a head whose neighbours (2i, 2i + 1) become halves (i, i + head / 2); 0: the order stays.
  uint64_t head = 0;
};

/// What the formats' readers make of a file or folder. The tensors point into the reader's own, which has to live on.
struct SourceModel {
  std::string format;                  ///< "GGUF" or "safetensors", for the summary
  std::string name;                    ///< what the source calls itself; may be empty
  formats::Json arch;                  ///< header.arch
  formats::Json tokenizer_config;      ///< header.tokenizer_config; null = none
  std::vector<uint8_t> tokenizer_json; ///< empty = none
  std::vector<SourceTensor> tensors;   ///< in the order of the result
  std::vector<std::string> warnings;   ///< one sentence each
  uint64_t bytes = 0;                  ///< of the source's files
};

/// "model.layers.3." + suffix.
std::string layer_name(uint64_t layer, std::string_view suffix);

} // namespace cortiq::convert
