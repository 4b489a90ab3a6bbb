#pragma once

// The command line of cortiq-compile.

#include <cstdint>
#include <optional>
#include <string>

#include "formats/signing/signer_key.h"
#include "formats/status.h"

namespace cortiq::tools {

enum class EmitKind { kArtifact, kCmf, kKernel, kVec, kAsm };

struct CompileOptions {
  std::string model;
  std::string output;
  std::string target = "native";
  bool vulkan = false;             ///< the word "vulkan" was among the targets: dispatches for a GPU are added
  std::string gpu_experts = "all"; ///< all on the device, or bank: as many as fit, or bank-bf16
  std::string numerics = "fast";
  bool half_prompts = false;         ///< prompts are multiplied in 16 bits, where a target has units for that
  std::string task;                  ///< the task mask to make part of the model; empty = all stay to choose from
  std::string weights = "embed";     ///< embed or none; with `gemv` the file that holds the payload
  std::string q4tp_ladder = "exact"; ///< how powers of two of q4tp's rows are computed: exact or vector
  EmitKind emit = EmitKind::kArtifact;
  std::string path = "auto"; ///< how products with many tokens are made: what kernel-choose-path takes
  uint64_t path_memory = 0;  ///< bytes that a worker may take for a decoded row group; 0 = by the target's caches
  uint64_t max_context = 0;  ///< 0 = as trained
  uint64_t max_batch = 256;  ///< 512 with half_prompts or vulkan, unless it is said
  uint64_t gpu_range = 0;    ///< 0: not said
  unsigned threads = 0;      ///< 0 = all cores
  std::string require_key;   ///< 64 hexadecimal digits of whoever has to have signed the model; empty = nobody
  std::optional<formats::SignerKey> sign; ///< the seed of whoever signs the artifact
  std::string cache_key;                  ///< what cortiq-run knows its copy by; written into the artifact's options
  bool print_ir_after_all = false;
  bool time_passes = false;

  std::string gemv;   ///< "FAMILY:SCHEME": an artifact of one kernel
  std::string shape;  ///< "ROWSxCOLS" of that kernel's matrix
  std::string layout; ///< of that kernel: r16, verbatim, or empty for what a compilation would choose
};

/// Reads the command line. No value: the program is to end now with status 0 (--help, --version and --target help have
/// printed what was asked).
StatusOr<std::optional<CompileOptions>> parse_options(int argc, char** argv);

} // namespace cortiq::tools
