#pragma once

// The keys of a GGUF file as the arch object of a CMF header.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/gguf/gguf_file.h"
#include "formats/json.h"
#include "tools/cortiq-convert/gguf_arch.h"
#include "tools/cortiq-convert/gguf_keys.h"
#include "tools/cortiq-convert/layer_sizes.h"

namespace cortiq::convert {

/// Sizes that the tensors have to have. Each is at most kMostSize, so that products of any two fit 64 bits.
struct GgufSizes {
  uint64_t layers = 0, hidden = 0, vocab = 0, key_length = 0, value_length = 0, rotated = 0;
  uint64_t predictors = 0;                             ///< blocks behind the layers
  uint64_t conv_taps = 0;                              ///< of short convolutions
  std::vector<uint64_t> heads, kv_heads, feed_forward; ///< per layer
  std::vector<LayerKind> kinds;                        ///< per layer
  LatentSizes latent;
  DeltaSizes delta;
  ExpertSizes experts;
  uint64_t dense_layers = 0; ///< the first of a model with experts
  double residual_scale = 1; ///< on what each block adds

  bool has_experts(uint64_t layer) const { return experts.count > 0 && layer >= dense_layers; }
};

struct GgufHeader {
  formats::Json arch;
  GgufSizes sizes;
  std::vector<std::string> warnings;
};

/// Fails for keys that are missing, contradict each other, or ask for what CMF has no field for. Messages name the key.
StatusOr<GgufHeader> read_gguf_header(const formats::GgufFile& file, const GgufArch& arch);

// Its parts, in this order; each fills in what it is named after.
Status read_gguf_experts(const GgufKeys& keys, const GgufArch& arch, GgufHeader& header);
Status read_gguf_mixers(const GgufKeys& keys, const GgufArch& arch, GgufHeader& header);
Status read_gguf_rope(const GgufKeys& keys, const GgufArch& arch, GgufHeader& header);

} // namespace cortiq::convert
