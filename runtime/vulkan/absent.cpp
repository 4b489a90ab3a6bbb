// What there is of runtime/vulkan/gpu.h where the project was built without Vulkan's headers.

#include "runtime/vulkan/gpu.h"

namespace cortiq::runtime {
namespace {

Status absent() {
  return unsupported("this program was built without Vulkan (libvulkan-dev and libvulkan-volk-dev were missing)");
}

} // namespace

StatusOr<std::vector<GpuInfo>> list_gpus() {
  return absent();
}

DeviceMemory device_memory() {
  return {};
}

StatusOr<std::shared_ptr<const GpuModel>> load_gpu_model(const LoadedArtifact&, const GpuOptions&) {
  return absent();
}

} // namespace cortiq::runtime
