#include "runtime/cli/gpu_choice.h"

#include <cstdio>
#include <optional>
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

bool asks_for_bank(const GpuRoom& room) {
  return room.slots != 0 || room.segments != 0;
}

/// The first device that "auto" takes; none with the reason in `why`.
std::optional<uint32_t> first_gpu(std::string& why) {
  const StatusOr<std::vector<GpuInfo>> gpus = list_gpus();
  if (!gpus.ok()) {
    why = gpus.status().message();
    return {};
  }
  std::optional<uint32_t> of_cpu;
  for (uint32_t i = 0; i < gpus->size(); ++i) {
    const GpuInfo& gpu = (*gpus)[i];
    if (gpu.unusable.empty() && gpu.kind != "cpu")
      return i;
    if (gpu.unusable.empty() && !of_cpu)
      of_cpu = i;
  }
  why = "there is no GPU that can run the model";
  if (of_cpu)
    why += " (" + (*gpus)[*of_cpu].name + " is the CPU itself, which --device " + std::to_string(*of_cpu) +
           " takes all the same)";
  return {};
}

} // namespace

StatusOr<std::shared_ptr<const GpuModel>> choose_gpu(const Model& model, const GpuChoice& choice,
                                                     const std::function<void(const std::string&)>& note) {
  const bool compiled = model.artifact().program_table->gpu() != nullptr;
  if (choice.device == "none" || (choice.device == "auto" && !compiled)) {
    if (choice.room.memory != 0 || asks_for_bank(choice.room))
      note(std::string("--device-memory, --bank-slots and --bank-segments are about GPUs, and the CPU runs the model") +
           (compiled ? "" : ": it was not compiled with --target vulkan"));
    return std::shared_ptr<const GpuModel>();
  }
  GpuOptions how;
  how.kv = choice.kv;
  how.room = choice.room;
  if (choice.device == "auto") {
    std::string why;
    const std::optional<uint32_t> first = first_gpu(why);
    if (!first) {
      note(why + "; the CPU runs it");
      return std::shared_ptr<const GpuModel>();
    }
    how.devices = {*first};
  } else {
    how.devices = parse_devices(choice.device);
  }
  if (compiled && asks_for_bank(choice.room) && !model.artifact().program_table->gpu()->bank())
    note("--bank-slots and --bank-segments have no effect: the artifact has no expert bank (cortiq-compile "
         "--gpu-experts=bank)");
  if (choice.progress && isatty(STDERR_FILENO))
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
