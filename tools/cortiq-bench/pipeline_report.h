#pragma once

// What a GPU's driver made of an artifact's shaders, for people and for programs.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/vulkan/gpu.h"

namespace cortiq::bench {

/// [{"module", "seconds", "statistics": {what the driver counts, by its own names}}], in the order in which they were
/// made.
nlohmann::ordered_json pipelines_json(const std::vector<runtime::GpuPipeline>& pipelines);

/// How many there are and how long they took, the slowest one, and of each of the driver's statistics the largest value
/// with the module that has it: registers and spills name the shader that holds others up. One line each.
std::string describe_pipelines(const std::vector<runtime::GpuPipeline>& pipelines);

} // namespace cortiq::bench
