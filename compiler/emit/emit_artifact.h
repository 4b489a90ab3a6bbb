#pragma once

// From finished kernel modules to the artifact on disk.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/artifact/writer.h"
#include "compiler/emit/kernel_emitter.h"
#include "compiler/emit/provenance.h"
#include "compiler/emit/weight_filler.h"
#include "compiler/gpu/GpuExperts.h"
#include "formats/status.h"

namespace cortiq::compiler {

/// What an artifact says beside what its module does.
struct ArtifactFacts {
  uint64_t maxContext = 0; ///< positions; 0 = what the model was trained for
  uint64_t maxBatch = 0;   ///< tokens of a prefill chunk
  bool embedWeights = true;
  bool gpu = false; ///< add the program's form for a GPU
  GpuExperts gpuExperts = GpuExperts::kAll;
  uint64_t gpuRange = 0;           ///< bytes that a device binds at least; 0: as Vulkan says
  bool gpuHalfPrompts = false;     ///< prompts run on 16-bit matrices where a device has them
  std::vector<uint8_t> tokenizer;  ///< the tokenizer section
  uint32_t tokenCount = 0;         ///< ids that have a text
  std::string textAbsent;          ///< why `tokenizer` is empty, for whoever asks the artifact for text
  std::vector<SourceFile> sources; ///< for the provenance; `sourceHash` is over all of the model's
  std::vector<uint8_t> sourceHash;
  std::string sourceName;                       ///< file name without folder
  std::string options;                          ///< the compile options that shaped the artifact
  std::function<void(const std::string&)> note; ///< is told, in a sentence, what was asked for and is not there
};

/// This compiler's version, "0.1.0".
std::string compilerVersion();

/// What one target runs. `module` passed kernel-verify-program and has `cmf.target`, `cmf.numerics` and `cmf.model`.
struct TargetProgram {
  mlir::ModuleOp module;
  KernelEmitter* emitter;
};

/// Generates the kernels of all programs, packs the weights, which have to be the same for all, once, and writes all to
/// `path`. The plainest target comes first; all modules are of one context.
Status emitArtifact(std::span<const TargetProgram> programs, const ModelBytes& model, ArtifactFacts facts,
                    const std::string& path, const WriteOptions& options);

} // namespace cortiq::compiler
