#pragma once

// config.json of a checkpoint folder as the arch object of a CMF header.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "formats/status.h"
#include "tools/cortiq-convert/hf_arch.h"

namespace cortiq::convert {

/// Sizes that the tensors have to have. Products of any two fit 64 bits.
struct HfSizes {
  uint64_t layers = 0, hidden = 0, vocab = 0, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0;
  bool tied = false;
};

struct HfHeader {
  const HfArch* type = nullptr;
  formats::Json arch;
  HfSizes sizes;
};

/// Fails for a model type outside the table and for fields that are missing, contradict each other, or ask for what CMF
/// has no field for. Messages name the field.
StatusOr<HfHeader> read_hf_config(const formats::Json& config);

} // namespace cortiq::convert
