#pragma once

// The masks section of a CMF file (specification 4.1): which neurons, heads, layers and experts a task uses.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/cmf/cmf_arch.h"
#include "formats/status.h"

namespace cortiq::formats {

enum class CmfMaskPriority : uint8_t { kFallback, kNormal, kPrimary };

/// One mask; the spans are rows of bits, lowest bit first, 1 = active, each row padded to a whole byte.
struct CmfMask {
  uint32_t task_id = 0;
  std::string name;
  std::string description;
  CmfMaskPriority priority = CmfMaskPriority::kNormal;
  float sparsity = 0;
  uint32_t ffn_rows = 0;            ///< num_layers, or num_layers * num_loops (pass-major)
  std::span<const uint8_t> ffn;     ///< ffn_rows x ceil(intermediate_size / 8)
  std::span<const uint8_t> heads;   ///< num_layers x ceil(num_attention_heads / 8)
  std::span<const uint8_t> gates;   ///< ceil(num_layers / 8): one bit a layer
  std::span<const uint8_t> experts; ///< num_layers x ceil(num_experts / 8), or empty
};

struct CmfMasks {
  std::string default_task;
  std::vector<CmfMask> masks;
};

/// Reads and checks a masks section; the views point into `section`.
StatusOr<CmfMasks> parse_cmf_masks(std::span<const uint8_t> section, const CmfArch& arch);

/// One entry of the sparse index (1.10): what a task uses of a layer. The section is shown and never executed.
struct CmfIndexEntry {
  uint32_t task_id = 0;
  uint32_t layer = 0;
  std::vector<uint16_t> groups; ///< active groups of 32 FFN neurons
  std::vector<uint8_t> heads;   ///< active heads
};

/// Reads a sparse index section. Neither ids nor indices are held against the model.
StatusOr<std::vector<CmfIndexEntry>> parse_cmf_index(std::span<const uint8_t> section);

} // namespace cortiq::formats
