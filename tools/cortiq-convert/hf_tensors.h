#pragma once

// The tensors of a checkpoint under their canonical names, one function a block.

#include "tools/cortiq-convert/hf_config.h"
#include "tools/cortiq-convert/source_tensors.h"

namespace cortiq::convert {

/// Looks tensors up by their canonical names.
struct HfTensors : SourceTensors {
  HfTensors(Find find, const HfHeader& header)
      : SourceTensors(std::move(find)), type(*header.type), sizes(header.sizes) {}

  const HfArch& type;
  const HfSizes& sizes;

  /// A tensor that has its canonical name and shape already.
  StatusOr<SourceTensor*> keep(const std::string& name, std::vector<uint64_t> shape) {
    return add(name, name, std::move(shape));
  }
};

// Blocks of a layer.
Status add_hf_attention(HfTensors& tensors, uint64_t layer);
Status add_hf_latent(HfTensors& tensors, uint64_t layer);
Status add_hf_short_conv(HfTensors& tensors, uint64_t layer);
Status add_hf_delta(HfTensors& tensors, uint64_t layer);
Status add_hf_feed_forward(HfTensors& tensors, uint64_t layer);

} // namespace cortiq::convert
