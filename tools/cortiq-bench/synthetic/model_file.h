#pragma once

// Writes model files of a synthetic shape.

#include <string>

#include "formats/status.h"
#include "tools/cortiq-bench/synthetic/shape.h"

namespace cortiq::bench {

enum class Payloads {
  kAbsent, ///< holes: right for a compiler that takes no weights, made in no time whatever the size
  kRandom, ///< valid random blocks of the spec's seed
};

/// Writes the model in the spec's container to `path`. It has no tokenizer. Payloads of codecs of variable size are
/// always there, because compilers read their sizes in them.
Status write_model(const SyntheticSpec& spec, Payloads payloads, const std::string& path);

/// "gguf" or "cmf".
std::string model_extension(const SyntheticSpec& spec);

/// Bytes of tensor `number`'s payload, whose size is tensor.bytes().
StatusOr<std::vector<uint8_t>> random_payload(const SyntheticTensor& tensor, uint64_t seed, uint64_t number);

Status write_gguf(const SyntheticSpec& spec, Payloads payloads, const std::string& path);
Status write_cmf(const SyntheticSpec& spec, Payloads payloads, const std::string& path);

} // namespace cortiq::bench
