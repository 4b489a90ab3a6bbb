#include "tools/cortiq-run/doctor.h"

#include <algorithm>
#include <cstdio>

#include "formats/artifact/target_needs.h"
#include "formats/file_kind.h"
#include "formats/quote.h"
#include "runtime/cli/compiler_process.h"
#include "runtime/cpu/bandwidth.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/limits.h"
#include "runtime/cpu/numa.h"
#include "runtime/session/session.h"

namespace cortiq::tools {
namespace {

void print_targets(const runtime::CpuState& cpu) {
  for (const formats::TargetNeeds& row : formats::target_needs()) {
    const std::vector<std::string> features(row.features.begin(), row.features.end());
    const Status status = runtime::check_features(features, cpu);
    std::printf("target %-11s %s\n", std::string(row.name).c_str(),
                status.ok() ? "usable" : ("no: " + status.message()).c_str());
  }
}

void print_limits(const runtime::CpuLimits& limits) {
  std::printf("threads      %u by default (%s): %u CPUs in the affinity mask, %u cores, ",
              runtime::default_threads(limits), runtime::default_threads_reason(limits).c_str(), limits.affinity,
              limits.cores);
  if (limits.quota > 0)
    std::printf("cgroup quota of %.2f CPUs\n", limits.quota);
  else
    std::printf("no cgroup quota\n");
  const size_t nodes = std::max<size_t>(1, runtime::read_numa_nodes().size());
  std::printf("nodes        %zu of memory%s\n", nodes,
              nodes > 1 ? ": memory is interleaved, workers are bound; --numa off leaves both to the system" : "");
  std::printf("memory       %.2f GiB in the machine, ", static_cast<double>(limits.host_memory) / (1 << 30));
  if (limits.memory_limit != 0)
    std::printf("cgroup limit of %.2f GiB\n", static_cast<double>(limits.memory_limit) / (1 << 30));
  else
    std::printf("no cgroup limit\n");
}

Status examine(const runtime::cli::RunOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(const formats::FileKind kind, formats::detect_file_kind(options.file));
  if (kind != formats::FileKind::kArtifact) {
    std::printf("file         %s is a model; it has to be compiled\n", formats::quote(options.file).c_str());
    return {};
  }
  runtime::LoadOptions load;
  load.verify_weights = options.verify;
  load.target = options.target;
  CORTIQ_ASSIGN_OR_RETURN(const auto model, runtime::Model::load(options.file, load));
  const std::string why = model->info().target_reason.empty() ? "" : " (" + model->info().target_reason + ")";
  std::printf("file         %s runs here: %s for %s%s, %.1f MB of weights%s\n", formats::quote(options.file).c_str(),
              model->info().architecture.c_str(), model->info().target.c_str(), why.c_str(),
              static_cast<double>(model->info().weight_bytes) * 1e-6, options.verify ? ", every hash right" : "");
  return {};
}

} // namespace

Status run_doctor(const runtime::cli::RunOptions& options) {
  const runtime::CpuState cpu = runtime::read_cpu_state();
  const runtime::CpuLimits limits = runtime::read_cpu_limits();
  std::printf("cpu          %s\n", cpu.name.c_str());
  std::string features;
  for (const std::string& name : runtime::usable_features(cpu))
    features += " " + name;
  std::printf("features    %s\n", features.c_str());
  print_targets(cpu);
  print_limits(limits);
  std::printf("read speed   %.1f GB/s with %u threads\n",
              runtime::measure_read_bandwidth(runtime::default_threads(limits)), runtime::default_threads(limits));
  const StatusOr<std::string> compiler = runtime::cli::find_compiler();
  std::printf("compiler     %s\n", compiler.ok() ? compiler->c_str() : "not found: only compiled artifacts can run");
  return options.file.empty() ? Status() : examine(options);
}

} // namespace cortiq::tools
