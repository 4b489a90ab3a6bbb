#pragma once

// The GPUs that --device names.

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

namespace cortiq::bench {

/// The model on the GPUs of `device`; null where it names none: the CPU runs it.
StatusOr<std::shared_ptr<const runtime::GpuModel>> load_gpu(const runtime::Model& model, const std::string& device,
                                                            std::optional<runtime::KvType> kv,
                                                            const runtime::GpuRoom& room, bool tell_pipelines = false);

} // namespace cortiq::bench
