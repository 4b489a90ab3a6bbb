#pragma once

// Parsing of one GGUF file (specification section 1). Private to the GGUF reader.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/gguf/gguf_value.h"
#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

/// Everything in one file; views point into its bytes.
struct GgufContents {
  uint32_t version = 0;
  uint32_t alignment = 32;
  uint64_t data_offset = 0;
  std::vector<GgufEntry> entries;
  std::vector<Tensor> tensors; ///< `file` is left at 0
};

/// Parses and checks a whole file. A later part of a split is read in the light of the first part's metadata.
StatusOr<GgufContents> parse_gguf(std::span<const uint8_t> file, const GgufContents* first_part = nullptr);

} // namespace cortiq::formats
