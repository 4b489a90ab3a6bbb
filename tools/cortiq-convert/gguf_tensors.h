#pragma once

// The tensors of a GGUF file under their canonical names, one function a block.

#include <string>
#include <string_view>

#include "formats/gguf/gguf_file.h"
#include "tools/cortiq-convert/gguf_arch.h"
#include "tools/cortiq-convert/gguf_header.h"
#include "tools/cortiq-convert/source_tensors.h"

namespace cortiq::convert {

struct GgufTensors : SourceTensors {
  GgufTensors(const formats::GgufFile& file, const GgufArch& arch, const GgufSizes& sizes)
      : SourceTensors([&file](const std::string& name) { return file.find(name); }), arch(arch), sizes(sizes) {}

  const GgufArch& arch;
  const GgufSizes& sizes;
};

/// "blk.3." + stem.
std::string gguf_block(uint64_t layer, std::string_view stem);

// Blocks of a layer.
Status add_gguf_attention(GgufTensors& tensors, uint64_t layer);
Status add_gguf_latent(GgufTensors& tensors, uint64_t layer);
Status add_gguf_short_conv(GgufTensors& tensors, uint64_t layer);
Status add_gguf_delta(GgufTensors& tensors, uint64_t layer);
Status add_gguf_feed_forward(GgufTensors& tensors, uint64_t layer);

} // namespace cortiq::convert
