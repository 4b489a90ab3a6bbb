#pragma once

// --device-memory, --bank-slots and --bank-segments: what a model may take on a GPU, and how its expert bank is cut.

#include <cstdint>
#include <string>

#include "runtime/vulkan/gpu_room.h"

namespace CLI {
class App;
} // namespace CLI

namespace cortiq::runtime::cli {

/// The words as they were given.
struct GpuRoomWords {
  std::string memory, segments = "auto";
  uint64_t slots = 0;
  GpuRoom room() const;
};

/// Declares the options in `group` of the help, empty for its first one.
void add_gpu_room(CLI::App& app, GpuRoomWords& words, const std::string& group);

} // namespace cortiq::runtime::cli
