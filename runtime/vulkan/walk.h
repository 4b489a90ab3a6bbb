#pragma once

// Walks over a GPU program's tables, any of which may be absent.

#include "formats/artifact/artifact_generated.h"

namespace cortiq::runtime::vulkan {

using Steps = flatbuffers::Vector<flatbuffers::Offset<artifact::GpuStep>>;

/// Whether a step has nothing for the device.
inline bool no_dispatches(const artifact::GpuStep& step) {
  return !step.dispatches() || step.dispatches()->size() == 0;
}

/// Calls `use(dispatch)` with each of a step, whatever may run in its place.
template <class Use>
void for_each_dispatch(const artifact::GpuStep& step, Use use) {
  for (uint32_t i = 0; !no_dispatches(step) && i < step.dispatches()->size(); ++i)
    use(*step.dispatches()->Get(i));
}

/// Calls `use(step, dispatch)` with each of a list of steps.
template <class Use>
void for_each_dispatch(const Steps* steps, Use use) {
  for (uint32_t s = 0; steps && s < steps->size(); ++s)
    for_each_dispatch(*steps->Get(s), [&](const artifact::GpuDispatch& d) { use(*steps->Get(s), d); });
}

} // namespace cortiq::runtime::vulkan
