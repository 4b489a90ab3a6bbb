#include "runtime/cli/gpu_room.h"

#include <CLI/CLI.hpp>

#include "runtime/cli/memory_size.h"
#include "runtime/cli/whole_number.h"

namespace cortiq::runtime::cli {

GpuRoom GpuRoomWords::room() const {
  return {parse_memory_size(memory).value_or(0), slots, segments == "8" ? 8u : segments == "16" ? 16u : 0u};
}

void add_gpu_room(CLI::App& app, GpuRoomWords& words, const std::string& group) {
  CLI::Option* const options[] = {
      app.add_option("--device-memory", words.memory,
                     "budget on each GPU for weights, as in 8G (default: what is free): of an artifact compiled with "
                     "--gpu-experts=bank, experts that do not fit are run by the CPU")
          ->check(memory_size())
          ->type_name("SIZE"),
      app.add_option("--bank-slots", words.slots, "places for experts in that bank (default: as many as fit)")
          ->check(whole_number(1)),
      app.add_option("--bank-segments", words.segments,
                     "buffers that hold them: 8, 16, or auto: 16 where 8 of the largest are too small")
          ->check(CLI::IsMember({"auto", "8", "16"}))
          ->capture_default_str()};
  for (CLI::Option* option : options)
    if (!group.empty())
      option->group(group);
}

} // namespace cortiq::runtime::cli
