#pragma once

// What cortiq-run --doctor finds out, before anything is said about it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/file_kind.h"
#include "formats/status.h"
#include "runtime/cli/run_options.h"
#include "runtime/cpu/limits.h"
#include "runtime/session/session.h"
#include "runtime/vulkan/gpu.h"

namespace cortiq::tools {

/// A target for this kind of processor.
struct FoundTarget {
  std::string name;
  std::string why_not; ///< empty: it can run here
};

/// The artifact or model that was named.
struct FoundFile {
  std::string path;
  formats::FileKind kind = formats::FileKind::kCmf;
  Status status;                           ///< of an artifact: whether it runs here
  std::optional<runtime::ModelInfo> model; ///< of an artifact that does
  bool for_gpu = false;                    ///< of an artifact: it holds a GPU's program
  bool verified = false;                   ///< every hash was compared
};

struct Findings {
  std::string cpu;
  std::vector<std::string> features; ///< that code may use
  std::vector<std::string> withheld; ///< that the processor has and the system does not let anybody use
  std::vector<FoundTarget> targets;  ///< of this kind of processor, the plainest first
  runtime::CpuLimits limits;
  unsigned online = 0;      ///< processors of the machine; 0 = unknown
  size_t nodes = 1;         ///< of memory, with processors of ours
  bool interleaved = false; ///< memory of several of them is taken in turn
  std::string governor;     ///< that sets the processor's clock; may be empty
  uint64_t available = 0;   ///< bytes of memory that nobody uses; 0 = unknown
  unsigned read_threads = 1;
  double read_gbps = 0;    ///< by so many threads
  std::string large_pages; ///< "always", "madvise", "never", or empty: the system has none
  uint64_t large_page_bytes = 0;
  std::vector<runtime::GpuInfo> gpus;
  std::string no_gpus;  ///< why there is no list
  std::string compiler; ///< path; empty: not found
  std::optional<FoundFile> file;

  /// The last target that can run here, or null.
  const FoundTarget* best() const {
    for (auto target = targets.rbegin(); target != targets.rend(); ++target)
      if (target->why_not.empty())
        return &*target;
    return nullptr;
  }
};

/// Looks at the machine, measures how fast it reads memory, and loads the file that `options` name.
Findings examine(const runtime::cli::RunOptions& options);

/// The parts of it that are files of the system. `root` is put before every path (tests give a folder of their own).
void read_system_files(Findings& findings, const std::string& root = {});

} // namespace cortiq::tools
