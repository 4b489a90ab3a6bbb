#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/signing/signer_key.h"
#include "runtime/vulkan/gpu_room.h"
#include "tools/cortiq-serve/engine/scheduler.h"
#include "tools/cortiq-serve/http/server.h"
#include "tools/cortiq-serve/sandbox/sandbox.h"

namespace cortiq::serve {

struct ServeOptions {
  std::string file;
  std::string model_id;                               ///< empty: the artifact's name
  runtime::Pooling pooling = runtime::Pooling::kMean; ///< of embeddings whose request names none
  uint64_t memory = 0;
  bool verify = false;
  std::string device = "auto"; ///< as runtime/cli/gpu_choice.h
  runtime::GpuRoom gpu_room;
  std::optional<formats::SignerKey> require_key; ///< whoever has to have signed the artifact
  SandboxMode sandbox = SandboxMode::kOff;
  SchedulerOptions scheduler;
  HttpOptions http;
};

struct ParseOutcome {
  bool run = true;
  int exit = 0; ///< when not
};

/// Reads the command line; prints help, version and complaints itself.
ParseOutcome parse_serve_options(int argc, char** argv, ServeOptions& out);

} // namespace cortiq::serve
