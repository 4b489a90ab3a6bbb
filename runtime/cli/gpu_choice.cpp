#include "runtime/cli/gpu_choice.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "runtime/cli/device_word.h"
#include "runtime/loader/load.h"
#include "runtime/session/session.h"
#include "runtime/vulkan/gpu.h"

namespace cortiq::runtime::cli {
namespace {

void show_progress(uint64_t done, uint64_t total) {
  constexpr int kWidth = 30;
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  const int full = static_cast<int>(share * kWidth);
  std::fprintf(stderr, "\rweights to the GPU [%.*s%*s] %3.0f %%%s", full, "##############################",
               kWidth - full, "", 100 * share, done == total ? "\n" : "");
}

} // namespace

StatusOr<std::shared_ptr<const GpuModel>> choose_gpu(const Model& model, const GpuChoice& choice,
                                                     const std::function<void(const std::string&)>& note) {
  const bool compiled = model.artifact().program_table->gpu() != nullptr;
  if (choice.device == "none" || (choice.device == "auto" && !compiled))
    return std::shared_ptr<const GpuModel>();
  GpuOptions how;
  how.kv = choice.kv;
  how.room = choice.room;
  if (choice.device == "auto") {
    const StatusOr<std::vector<GpuInfo>> gpus = list_gpus();
    const auto usable = [](const GpuInfo& gpu) { return gpu.kind != "cpu" && gpu.unusable.empty(); };
    const auto first = gpus.ok() ? std::ranges::find_if(*gpus, usable) : std::vector<GpuInfo>::const_iterator();
    if (!gpus.ok() || first == gpus->end()) {
      note((gpus.ok() ? "there is no GPU that can run the model" : gpus.status().message()) + "; the CPU runs it");
      return std::shared_ptr<const GpuModel>();
    }
    how.devices = {static_cast<uint32_t>(first - gpus->begin())};
  } else {
    how.devices = parse_devices(choice.device);
  }
  if (isatty(STDERR_FILENO))
    how.progress = show_progress;
  StatusOr<std::shared_ptr<const GpuModel>> gpu = load_gpu_model(model.artifact(), how);
  if (!gpu.ok() && choice.cpu_fallback) {
    note(gpu.status().message() + "; the CPU runs the model");
    return std::shared_ptr<const GpuModel>();
  }
  if (gpu.ok() && choice.verbose && !(*gpu)->fallbacks().empty())
    note((*gpu)->fallbacks());
  return gpu;
}

} // namespace cortiq::runtime::cli
