// Recurrent states of a session: on the device while its steps follow one another, else the host's.

#include <algorithm>
#include <cstring>

#include "runtime/vulkan/session.h"

namespace cortiq::runtime::vulkan {

using namespace formats;

Status VulkanSession::reserve_states() {
  uint64_t bytes = 0;
  const uint64_t alignment = std::max<uint64_t>(256, device_->limits().minStorageBufferOffsetAlignment);
  model_->for_each_dispatch([&](const artifact::GpuDispatch& d) {
    if (d.state() == kNoIndex || state_places_.contains(d.state()))
      return;
    const uint64_t size = model_->artifact().program.states[d.state()] * sizeof(float);
    state_places_[d.state()] = {0, bytes, size};
    bytes += (size + alignment - 1) / alignment * alignment;
  });
  if (bytes == 0)
    return {};
  CORTIQ_ASSIGN_OR_RETURN(states_, Buffer::make(device_, bytes, Place::kDevice, "recurrent states"));
  CORTIQ_ASSIGN_OR_RETURN(host_states_, Buffer::make(device_, bytes, Place::kRead, "copies of recurrent states"));
  return {};
}

Status VulkanSession::copy_states(bool to_host) {
  CORTIQ_ASSIGN_OR_RETURN(VkCommandBuffer commands, begin());
  barrier(commands, true, true);
  const VkBufferCopy all{0, 0, states_.bytes()};
  device_->call().vkCmdCopyBuffer(commands, to_host ? states_.handle() : host_states_.handle(),
                                  to_host ? host_states_.handle() : states_.handle(), 1, &all);
  return run_once(commands);
}

Status VulkanSession::put_states(const StepContext& context) {
  if (state_places_.empty() || states_position_ == context.position)
    return {};
  states_position_.reset();
  for (const auto& [state, place] : state_places_)
    std::memcpy(static_cast<uint8_t*>(host_states_.mapped()) + place.offset, context.states[state], place.bytes);
  return copy_states(false);
}

Status VulkanSession::bring_states(std::span<float* const> states, uint64_t position) {
  if (!states_newer_ || states_position_ != position)
    return {};
  CORTIQ_RETURN_IF_ERROR(copy_states(true));
  for (const auto& [state, place] : state_places_)
    std::memcpy(states[state], static_cast<const uint8_t*>(host_states_.mapped()) + place.offset, place.bytes);
  states_newer_ = false;
  return {};
}

} // namespace cortiq::runtime::vulkan
