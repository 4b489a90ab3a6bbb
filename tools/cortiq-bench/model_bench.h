#pragma once

// Whole-model measurements.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/signing/signer_key.h"
#include "formats/status.h"
#include "runtime/vulkan/gpu_room.h"

namespace cortiq::bench {

struct ModelBenchOptions {
  std::vector<std::string> files;
  uint64_t prefill = 512; ///< tokens of the prompt
  uint64_t decode = 64;   ///< tokens generated after it
  std::string device;     ///< number of a GPU; empty = the CPU
  runtime::GpuRoom gpu_room;
  std::vector<unsigned> threads;   ///< each is measured in turn
  std::vector<unsigned> sequences; ///< not empty: so many computed together are measured instead
  unsigned repeat = 3;
  unsigned seconds = 0; ///< more runs, until a phase has taken so long
  std::string kv;
  std::string target;  ///< of those that an artifact holds; empty: the best that can run
  uint64_t memory = 0; ///< bytes of the budget; 0 = none
  std::string pages = "system", numa = "auto";
  std::optional<uint64_t> fill_seed;
  std::optional<formats::SignerKey> require_key; ///< whoever has to have signed each artifact
  bool json = false;
  bool verbose = false;
  bool profile = false;
  bool no_machine = false;     ///< leave out how fast the machine reads
  std::string trace, roofline; ///< files to write; of the first artifact on the first number of threads
};

/// Measures prefill and decode of each artifact and prints them beside the machine's read bandwidth.
Status bench_models(const ModelBenchOptions& options);

} // namespace cortiq::bench
