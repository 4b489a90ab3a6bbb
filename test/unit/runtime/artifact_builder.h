#pragma once

// Puts small artifacts together: weights from floats, kernels from scalar_kernel(), slots from element counts.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/artifact/writer.h"
#include "test/unit/runtime/scalar_kernel.h"

namespace cortiq::test {

/// What products read.
enum class Numbers {
  kF32,
  kCodes,       ///< quantized activations
  kHalfPrompts, ///< the same, but for a prompt's tokens, which have a kernel of their own: it reads bf16
};

class ArtifactBuilder {
public:
  explicit ArtifactBuilder(uint64_t max_batch) : max_batch_(max_batch) {}

  uint32_t slot(uint64_t elements, artifact::BufferKind kind = artifact::BufferKind::F32, uint32_t records = 1);
  /// A matrix in the R16 layout.
  uint32_t matrix(const std::string& name, uint64_t rows, uint64_t cols, const std::vector<float>& values);
  uint32_t vector(const std::string& name, const std::vector<float>& values);
  /// A weight of `own`'s shape that is mixed at run time of `own` and of the alternatives of skills 0, 1, ….
  uint32_t mixture(const std::string& name, uint32_t own, const std::vector<uint32_t>& alternatives);
  /// A slot with the same in quantized form, which a stage of its own fills.
  uint32_t quantized(uint32_t input);
  /// Kernels for token tiles of 1, 2 and 4 where they are needed. `input` has floats, whatever `numbers` says.
  artifact::MatmulPartT matmul(uint32_t weight, uint32_t input, uint32_t out, uint32_t bias = 0xffffffff,
                               uint32_t residual = 0xffffffff);
  /// The same for one expert: its pairs' records, or the token's own value, in the form that `numbers` says.
  artifact::ExpertPartT expert(uint32_t weight, uint32_t input, uint32_t token, uint32_t out,
                               uint32_t bias = 0xffffffff);
  /// A stage of these products.
  void products(std::initializer_list<artifact::MatmulPartT> parts, bool head = false);
  /// The layer's part of the cache: keys and values of `dim` each; `window` and `ring` as in the schema.
  void kv_layer(uint64_t kv_heads, uint64_t dim, uint64_t window = 0, bool ring = false);
  template <class OpT>
  void stage(OpT op, bool head = false) {
    begin_stage(head);
    call(std::move(op));
  }
  void begin_stage(bool head);
  template <class OpT>
  void call(OpT op) {
    auto entry = std::make_unique<artifact::CallT>();
    entry->op.Set(std::move(op));
    program.stages.back()->calls.push_back(std::move(entry));
  }

  /// Everything that writeArtifact() needs.
  compiler::ArtifactContents contents();
  /// Writes it; a failure is returned.
  Status write(const std::string& path, const compiler::WriteOptions& options = {});

  artifact::ProgramT program;
  artifact::ManifestT manifest;
  bool embed_weights = true;
  Numbers numbers = Numbers::kF32; ///< before the first product
  /// Names of targets that all run `program`; not needed for an artifact of one.
  std::vector<std::string> targets;

private:
  std::vector<uint32_t> kernels(uint32_t rows, uint64_t k, bool bias, bool residual);
  uint32_t kernel(const ScalarKernelSpec& spec);
  artifact::MatmulPartT product(uint32_t weight, uint32_t input, uint32_t out, uint32_t bias, uint32_t residual);

  uint64_t max_batch_;
  std::vector<compiler::KernelCode> code_;
  std::map<std::string, uint32_t> kernel_index_;
  std::vector<std::vector<uint8_t>> packed_;
};

/// Weights of random numbers under names of their own: "m0", "v1", …
class RandomWeights {
public:
  RandomWeights(ArtifactBuilder& builder, uint32_t seed) : builder_(builder), random_(seed) {}

  /// Uniform in [-spread, spread).
  std::vector<float> numbers(uint64_t count, float spread);
  uint32_t matrix(uint64_t rows, uint64_t cols, float spread);
  uint32_t vector(uint64_t count, float spread);

private:
  ArtifactBuilder& builder_;
  std::mt19937 random_;
  int names_ = 0;
};

} // namespace cortiq::test
