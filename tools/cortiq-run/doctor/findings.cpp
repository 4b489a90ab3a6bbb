#include "tools/cortiq-run/doctor/findings.h"

#include <algorithm>
#include <cstdlib>
#include <elf.h>
#include <fstream>
#include <unistd.h>

#include "formats/artifact/target_needs.h"
#include "runtime/cli/compiler_process.h"
#include "runtime/cpu/bandwidth.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/numa.h"
#include "runtime/loader/load.h"
#include "runtime/loader/targets.h"

namespace cortiq::tools {
namespace {

#if defined(__aarch64__)
constexpr uint32_t kMachine = EM_AARCH64;
#else
constexpr uint32_t kMachine = EM_X86_64;
#endif

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// The word in brackets of "always [madvise] never".
std::string chosen_word(const std::string& path) {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (word.size() > 2 && word.front() == '[' && word.back() == ']')
      return word.substr(1, word.size() - 2);
  return "";
}

uint64_t meminfo(const std::string& root, const std::string& wanted) {
  std::ifstream file(root + "/proc/meminfo");
  std::string key, unit;
  for (uint64_t kib = 0; file >> key >> kib;) {
    if (key == wanted)
      return kib * 1024;
    std::getline(file, unit);
  }
  return 0;
}

FoundFile examine_file(const runtime::cli::RunOptions& options) {
  FoundFile out;
  out.path = options.file;
  const StatusOr<formats::FileKind> kind = formats::detect_file_kind(options.file);
  if (!kind.ok()) {
    out.status = kind.status();
    return out;
  }
  out.kind = *kind;
  if (out.kind != formats::FileKind::kArtifact)
    return out;
  runtime::LoadOptions load;
  load.require_key = options.artifact_key;
  load.verify_weights = out.verified = options.verify || options.artifact_key;
  load.target = options.target;
  const StatusOr<std::shared_ptr<const runtime::Model>> model = runtime::Model::load(options.file, load);
  if (!model.ok()) {
    out.status = model.status();
    return out;
  }
  out.model = (*model)->info();
  out.for_gpu = (*model)->artifact().program_table->gpu() != nullptr;
  return out;
}

} // namespace

void read_system_files(Findings& findings, const std::string& root) {
  findings.available = meminfo(root, "MemAvailable:");
  const std::vector<runtime::NumaNode> nodes = runtime::read_numa_nodes(root);
  findings.nodes = std::max<size_t>(1, nodes.size());
  findings.interleaved = !runtime::plan_numa(nodes).memory.empty();
  findings.governor = first_word(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  findings.large_pages = chosen_word(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  const std::string size = first_word(root + "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
  findings.large_page_bytes = size.empty() ? 0 : std::strtoull(size.c_str(), nullptr, 10);
}

Findings examine(const runtime::cli::RunOptions& options) {
  Findings out;
  const runtime::CpuState cpu = runtime::read_cpu_state();
  out.cpu = cpu.name;
  out.features = runtime::usable_features(cpu);
  out.withheld = runtime::withheld_features(cpu);
  const runtime::TargetMachine machine = runtime::this_machine();
  for (const formats::TargetNeeds& row : formats::target_needs())
    if (row.machine == kMachine) {
      const runtime::ArtifactTarget target{std::string(row.name), {row.features.begin(), row.features.end()}, {}};
      out.targets.push_back({target.name, runtime::can_run(target, machine).message()});
    }
  out.limits = runtime::read_cpu_limits();
  out.online = static_cast<unsigned>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN)));
  read_system_files(out);
  out.read_threads = options.threads != 0 ? options.threads : runtime::default_threads(out.limits);
  constexpr unsigned kPasses = 3; // quick, and enough to see which memory this is
  out.read_gbps = runtime::measure_read_rate(out.read_threads, runtime::ReadSource::kMemory, 0, kPasses).best;
  if (StatusOr<std::vector<runtime::GpuInfo>> gpus = runtime::list_gpus(); gpus.ok())
    out.gpus = *std::move(gpus);
  else
    out.no_gpus = gpus.status().message();
  if (StatusOr<std::string> compiler = runtime::cli::find_compiler(); compiler.ok())
    out.compiler = *std::move(compiler);
  if (!options.file.empty())
    out.file = examine_file(options);
  return out;
}

} // namespace cortiq::tools
