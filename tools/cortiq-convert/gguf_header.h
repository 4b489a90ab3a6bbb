#pragma once

// The keys of a GGUF file as the arch object of a CMF header.

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/gguf/gguf_file.h"
#include "formats/json.h"
#include "tools/cortiq-convert/gguf_arch.h"

namespace cortiq::convert {

/// Sizes that the tensors have to have. Products of any two fit 64 bits.
struct GgufSizes {
  uint64_t layers = 0, hidden = 0, vocab = 0, key_length = 0, value_length = 0;
  std::vector<uint64_t> heads, kv_heads, feed_forward; ///< per layer
};

struct GgufHeader {
  formats::Json arch;
  GgufSizes sizes;
};

/// Fails for keys that are missing, contradict each other, or ask for what CMF has no field for. Messages name the key.
StatusOr<GgufHeader> read_gguf_header(const formats::GgufFile& file, const GgufArch& arch);

} // namespace cortiq::convert
