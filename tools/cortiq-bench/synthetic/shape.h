#pragma once

// The shape and codecs of a model that exists only to be measured.

#include <cstdint>
#include <string>
#include <vector>

#include "formats/codec/codec.h"
#include "formats/status.h"

namespace cortiq::bench {

/// A decoder of Llama's build (dense) or of Qwen3's with experts.
struct SyntheticShape {
  std::string name;
  uint64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, context = 32768;
  bool tied = true; ///< the embedding is the head
  uint64_t experts = 0, used = 0, expert_ffn = 0;

  bool moe() const { return experts != 0; }
};

struct SyntheticSpec {
  SyntheticShape shape;
  const formats::Codec* codec = nullptr;     ///< of feed-forward and experts
  const formats::Codec* attention = nullptr; ///< of attention
  const formats::Codec* head = nullptr;      ///< of embedding and head
  bool cmf = false;                          ///< container: CMF, or GGUF
  uint64_t seed = 1;                         ///< of the weights, where they are written

  std::string title() const; ///< "llama-3.2-3b q4_0"
};

/// SHAPE[,KEY=N…]:CODEC[,KEY=CODEC…], as in "3b:q4_0", "30b-a3b,layers=12:q4_k,attention=q8_0" or
/// "layers=4,hidden=512,ffn=1024,heads=8,vocab=4096:cmf:q4tp". Fails with one sentence that says what is wrong and what
/// there is.
StatusOr<SyntheticSpec> parse_synthetic(const std::string& text);

/// One line a named shape, for --help.
std::string named_shapes();

/// One tensor of the model file.
struct SyntheticTensor {
  std::string name;
  const formats::Codec* codec;
  std::vector<uint64_t> shape; ///< outermost first
  bool ones = false;           ///< a norm's scale

  uint64_t rows() const;
  uint64_t cols() const { return shape.back(); }
  /// Size of its payload; for codecs of variable size the least. Fails, naming it, for a shape that its codec can't
  /// hold.
  StatusOr<uint64_t> bytes() const;
};

/// The tensors by their names in the spec's container.
std::vector<SyntheticTensor> synthetic_tensors(const SyntheticSpec& spec);

} // namespace cortiq::bench
