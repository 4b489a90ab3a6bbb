#pragma once

// A model to be converted, in CMF's terms: canonical names, header fields, tokenizer; and where its weights lie.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/encode/row_source.h"
#include "formats/json.h"
#include "formats/status.h"
#include "formats/tensor.h"
#include "tools/cortiq-convert/row_order.h"

namespace cortiq::convert {

/// One tensor of the result. Its rows are rows of a tensor of the source, perhaps in another order, with other columns
/// or changed values; or they are made of several tensors.
struct SourceTensor {
  std::string name;                        ///< canonical (CMF specification 3.1)
  std::vector<uint64_t> shape;             ///< of the result; all dimensions but the last are rows
  const formats::Tensor* tensor = nullptr; ///< never null
  uint64_t first_row = 0;                  ///< of `tensor`; for a vector the first value
  IndexOrder order = nullptr;              ///< result's row (vector: value) to source's, after first_row; null = same
  ColumnOrder columns = {};                ///< likewise within a row of a matrix
  std::function<float(float)> value = {};  ///< what becomes of each value; empty = it stays
  std::shared_ptr<const formats::RowSource> derived = {}; ///< rows computed from `tensor` and others; usually null
  bool precise = false; ///< stays plain numbers under --quant: routers, gates, convolutions (2, converter policy)

  uint64_t cols() const { return shape.back(); }
  uint64_t rows() const {
    uint64_t n = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i)
      n *= shape[i];
    return n;
  }
  /// Whether the result's bytes can be those of the source.
  bool movable() const { return !value && !derived; }
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
