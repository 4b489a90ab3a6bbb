#pragma once

// --device and --fallback: the GPU that a model goes to.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "formats/status.h"
#include "runtime/executor/kv_type.h"
#include "runtime/vulkan/gpu_room.h"

namespace cortiq::runtime {
class GpuModel; // runtime/vulkan
class Model;    // runtime/session
} // namespace cortiq::runtime

namespace cortiq::runtime::cli {

struct GpuChoice {
  std::string device = "auto";             ///< "auto", "none", or numbers with commas between them
  bool cpu_fallback = false;               ///< what fails is left to the CPU
  bool verbose = false;                    ///< stages that the CPU runs are told
  std::optional<KvType> kv = std::nullopt; ///< of caches; none = the artifact's
  GpuRoom room = {};
  bool progress = true; ///< the bar, on a terminal
};

/// Puts the model on the GPU that was chosen, with a bar on a terminal while weights go there; null = the CPU runs it.
/// What a user should know goes to `note`, a sentence at a time.
StatusOr<std::shared_ptr<const GpuModel>> choose_gpu(const Model& model, const GpuChoice& choice,
                                                     const std::function<void(const std::string&)>& note);

/// What make() makes for `gpu`. Where that fails and the CPU may take its place, `gpu` becomes null, which `note` is
/// told, and make() is asked once more.
template <class Make>
auto make_or_fall_back(std::shared_ptr<const GpuModel>& gpu, bool cpu_fallback,
                       const std::function<void(const std::string&)>& note, const Make& make) {
  auto made = make();
  if (made.ok() || !gpu || !cpu_fallback)
    return made;
  note(made.status().message() + "; the CPU runs the model");
  gpu = nullptr;
  return make();
}

} // namespace cortiq::runtime::cli
