#pragma once

// config.json of a checkpoint folder as the arch object of a CMF header.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "formats/status.h"
#include "tools/cortiq-convert/hf_arch.h"
#include "tools/cortiq-convert/hf_fields.h"
#include "tools/cortiq-convert/layer_sizes.h"

namespace cortiq::convert {

/// Sizes that the tensors have to have. Each is at most kMostSize, so that products of any two fit 64 bits.
struct HfSizes {
  uint64_t layers = 0, hidden = 0, vocab = 0, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0;
  uint64_t context = 0;
  uint64_t predictors = 0; ///< blocks behind the layers
  bool tied = false;
  std::vector<LayerKind> kinds; ///< per layer
  std::vector<bool> sparse;     ///< per layer: has experts
  LatentSizes latent;
  DeltaSizes delta;
  ExpertSizes experts;
  uint64_t conv_taps = 0;
  double residual_scale = 1;
  bool windows() const;
};

struct HfHeader {
  const HfArch* type = nullptr;
  formats::Json arch;
  HfSizes sizes;
  std::vector<std::string> warnings;
};

/// Fails for a model type outside the table and for fields that are missing, contradict each other, or ask for what CMF
/// has no field for. Messages name the field. Of models of more than text the part for text is read.
StatusOr<HfHeader> read_hf_config(const formats::Json& config);

// Its parts, in this order; each fills in what it is named after.
Status read_hf_mixers(const HfFields& fields, HfHeader& header);
Status read_hf_experts(const HfFields& fields, HfHeader& header);
Status read_hf_rope(const HfFields& fields, HfHeader& header);

} // namespace cortiq::convert
