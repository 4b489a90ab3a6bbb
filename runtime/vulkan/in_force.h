#pragma once

// Which dispatches run under the skill and mask in force.

#include <compare>
#include <cstdint>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "formats/overlay/catalog.h"
#include "runtime/executor/program.h"

namespace cortiq::runtime::vulkan {

/// What recorded commands depend on.
struct InForce {
  uint32_t skill = UINT32_MAX; ///< alone in force
  uint32_t mask = UINT32_MAX;
  bool blend = false; ///< the one that was mixed last
  bool taps = false;  ///< somebody asks for sums of residual rows
  auto operator<=>(const InForce&) const = default;
};

InForce in_force(const StepContext& context);
/// Whether a dispatch runs in the steps of `context`.
bool runs(const artifact::GpuDispatch& dispatch, const StepContext& context);
/// The rows of bits of every mask, one mask behind the other, and at the end those where none is in force: all ones.
std::vector<uint32_t> mask_words(const artifact::GpuProgram& program, const formats::OverlayCatalog& catalog);

} // namespace cortiq::runtime::vulkan
