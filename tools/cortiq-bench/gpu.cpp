#include "tools/cortiq-bench/gpu.h"

#include "runtime/cli/device_word.h"
#include "runtime/session/session.h"
#include "runtime/vulkan/gpu.h"

namespace cortiq::bench {

StatusOr<std::shared_ptr<const runtime::GpuModel>> load_gpu(const runtime::Model& model, const std::string& device,
                                                            std::optional<runtime::KvType> kv,
                                                            const runtime::GpuRoom& room, bool tell_pipelines) {
  if (device.empty())
    return std::shared_ptr<const runtime::GpuModel>();
  return runtime::load_gpu_model(
      model.artifact(),
      {.devices = runtime::cli::parse_devices(device), .kv = kv, .room = room, .tell_pipelines = tell_pipelines});
}

} // namespace cortiq::bench
