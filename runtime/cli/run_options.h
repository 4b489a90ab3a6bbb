#pragma once

// The command line of `cortiq-run`, which `cortiq-compile --interpret` shares.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/signing/signer_key.h"
#include "runtime/generate/draft_policy.h"
#include "runtime/sampling/sampler.h"
#include "runtime/vulkan/gpu_room.h"

namespace cortiq::runtime::cli {

struct RunOptions {
  std::string file;
  // What to run.
  std::optional<std::string> prompt;           ///< -p; "-" was already replaced by standard input
  std::optional<std::vector<uint32_t>> tokens; ///< --tokens
  bool chat = false;
  std::string system;                     ///< system message of --chat
  std::string load_session, save_session; ///< files; empty: none
  // How to generate.
  std::optional<uint64_t> max_tokens; ///< -n
  bool ignore_eos = false;
  sampling::SamplingOptions sampling;
  Speculation speculation = Speculation::kAuto;
  // What is in force of the model's skills and masks; empty: nothing was said.
  std::string skill; ///< an id, "none" or "auto"
  std::string blend; ///< "story:0.7,code:0.3"
  std::string task;  ///< a mask's name or "none"
  // How to show it.
  bool json = false;
  std::string logits; ///< file that receives the prompt's logits
  bool stats = false;
  bool verbose = false;
  // How to run it.
  std::string backend = "cpu";
  std::string device = "auto"; ///< "auto", "none", "list" or a number
  GpuRoom gpu_room;            ///< on each GPU
  std::string fallback;        ///< "cpu": goes on there when the GPU fails; "" = does not
  unsigned threads = 0;
  std::string kv; ///< "", "f32", "f16" or "q8"
  uint64_t max_context = 0;
  uint64_t memory = 0; ///< bytes; 0 = no budget
  std::string pages = "system", numa = "auto";
  bool verify = false;
  bool doctor = false;
  std::string artifact_target; ///< of those that an artifact holds; empty: the best that can run
  // For a model that has to be compiled first.
  std::string numerics, prompt_numerics, q4tp_ladder, gpu_experts, target, cache;
  std::string require_key; ///< 64 hexadecimal digits of whoever has to have signed what `file` names; empty = nobody
  std::optional<formats::SignerKey> artifact_key; ///< the same, where it is an artifact
};

/// What came of a command line: go on, or end with this code (after --help, or a sentence on stderr).
struct ParseOutcome {
  bool run = false;
  int exit = 0;
};

/// Parses `argv`. `program` names the tool in messages.
ParseOutcome parse_run_options(int argc, const char* const* argv, const std::string& program, RunOptions& options);

} // namespace cortiq::runtime::cli
