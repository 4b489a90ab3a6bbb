#include "tools/cortiq-run/doctor/advice.h"

#include <algorithm>
#include <cstdio>

#include "formats/quote.h"

namespace cortiq::tools {
namespace {

using Lines = std::vector<std::string>;

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string gib(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

bool usable(const runtime::GpuInfo& gpu) {
  return gpu.kind != "cpu" && gpu.unusable.empty();
}

/// The file itself: whether it runs, and whether it was made for this machine.
void advise_file(const Findings& f, Lines& out) {
  if (!f.file)
    return;
  const FoundFile& file = *f.file;
  const std::string name = formats::quote(file.path);
  if (!file.status.ok()) {
    if (file.kind == formats::FileKind::kArtifact && f.best())
      out.push_back("compile the model of " + name + " again, for this machine: cortiq-compile MODEL --target " +
                    f.best()->name + " -o OUT.cqa");
    return;
  }
  if (file.kind != formats::FileKind::kArtifact) {
    out.push_back("compile " + name + " once, instead of at its first run: cortiq-compile " + name + " -o OUT.cqa");
    return;
  }
  const runtime::ModelInfo& model = *file.model;
  if (f.best() && f.best()->name != model.target)
    out.push_back(name + " runs as " + model.target + ", and this machine can do " + f.best()->name +
                  ": cortiq-compile MODEL --target " + (file.for_gpu ? "vulkan," : "") + f.best()->name +
                  " -o OUT.cqa");
  if (model.exact)
    out.push_back(name + " computes in 32-bit floats; the fast arm takes a fraction of the time: cortiq-compile MODEL "
                         "--numerics fast -o OUT.cqa");
  if (!file.for_gpu && std::any_of(f.gpus.begin(), f.gpus.end(), usable))
    out.push_back(name +
                  " has no program for the GPU of this machine: cortiq-compile MODEL --target vulkan -o OUT.cqa");
  const uint64_t room = f.limits.memory_limit != 0 && (f.available == 0 || f.limits.memory_limit < f.available)
                            ? f.limits.memory_limit
                            : f.available;
  if (room != 0 && model.weight_bytes > room)
    out.push_back("its weights take " + gib(model.weight_bytes) + " and there is room for " + gib(room) +
                  ": give a model of experts --memory with less than that, or quantize it further with "
                  "cortiq-convert --quant");
}

void advise_processor(const Findings& f, Lines& out) {
  if (!f.withheld.empty())
    out.push_back("the processor has " + join(f.withheld) +
                  ", which the operating system has not enabled: take a newer kernel, or let the virtual machine have "
                  "the host's processor (-cpu host)");
  for (const FoundTarget& target : f.targets)
    if (target.why_not.find("does not let this process") != std::string::npos)
      out.push_back(
          "target " + target.name +
          ": the system refuses tiles to this process; allow arch_prctl in its seccomp profile, or take Linux "
          "5.16 or newer");
  const runtime::CpuLimits& limits = f.limits;
  if (limits.quota > 0 && limits.quota < std::min(limits.affinity, limits.cores)) {
    char text[160];
    std::snprintf(text, sizeof(text),
                  "the control group allows %.2f of %u cores: raise its cpu.max (docker run "
                  "--cpus %u)",
                  limits.quota, limits.cores, limits.cores);
    out.emplace_back(text);
  }
  if (f.online > limits.affinity)
    out.push_back("the process may use " + std::to_string(limits.affinity) + " of " + std::to_string(f.online) +
                  " processors: start it without taskset, or widen its cpuset");
  if (f.governor == "powersave" || f.governor == "conservative")
    out.push_back("the processor's clock is held low (" + f.governor + "): cpupower frequency-set -g performance");
}

void advise_memory(const Findings& f, Lines& out) {
  if (f.large_pages == "never")
    out.push_back("large pages are switched off; with them decoding takes up to a tenth less time: echo madvise > "
                  "/sys/kernel/mm/transparent_hugepage/enabled, then --pages large");
  else if (!f.large_pages.empty())
    out.push_back("where a model runs for long, --pages large copies it into large pages when it is loaded: decoding "
                  "then takes up to a tenth less time");
}

void advise_gpu(const Findings& f, Lines& out) {
  if (!f.no_gpus.empty())
    out.push_back("there is no GPU to be found (" + f.no_gpus +
                  "); where there is one, install its driver and libvulkan1 (Debian: apt install mesa-vulkan-drivers)");
  for (const runtime::GpuInfo& gpu : f.gpus)
    if (!gpu.unusable.empty())
      out.push_back("the GPU " + gpu.name + " cannot be used, " + gpu.unusable + ": a newer driver may offer it");
}

} // namespace

double decode_ceiling(const Findings& f) {
  constexpr uint64_t kBeyondCaches = 64 << 20;
  if (!f.file || !f.file->model || f.file->model->weight_bytes < kBeyondCaches)
    return 0;
  return f.read_gbps * 1e9 / static_cast<double>(f.file->model->weight_bytes);
}

std::vector<std::string> advise(const Findings& findings) {
  Lines out;
  if (!findings.best())
    out.push_back("no target runs on this processor: x86-64 with AVX2, or 64-bit Arm, is the least that cortiq needs");
  advise_file(findings, out);
  advise_processor(findings, out);
  advise_memory(findings, out);
  advise_gpu(findings, out);
  if (findings.compiler.empty())
    out.push_back("there is no cortiq-compile beside this program or on PATH: install cortiq-compiler to run models "
                  "that are not compiled yet");
  return out;
}

} // namespace cortiq::tools
