// What a session binds for its dispatches: weights, the work space, caches, states; a blend's weights in their place.

#include <algorithm>

#include "formats/artifact/shader_abi.h"
#include "runtime/overlay/overlay.h"
#include "runtime/vulkan/session.h"

namespace cortiq::runtime::vulkan {

using namespace formats;

Status VulkanSession::make_sets() {
  const VolkDeviceTable& call = device_->call();
  std::vector<SetKey> keys;
  model_->for_each_dispatch([&](const artifact::GpuDispatch& d) { keys.push_back(set_key(d)); });
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  const uint32_t count = std::max<uint32_t>(1, static_cast<uint32_t>(keys.size()));
  const uint32_t segments = model_->bank() ? 2 * model_->bank()->segments() : 0; // of gate and up, and of down
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, count * kShaderBindings + segments};
  VkDescriptorPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                  .maxSets = count,
                                  .poolSizeCount = 1,
                                  .pPoolSizes = &size};
  CORTIQ_VK(call.vkCreateDescriptorPool(device_->handle(), &pool, nullptr, &sets_pool_), "binding buffers");
  for (const SetKey& key : keys) {
    const artifact::BankPart bank = std::get<4>(key);
    const VkDescriptorSetLayout layout = binds_bank(bank) ? model_->bank_set_layout() : model_->set_layout();
    VkDescriptorSetAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                         .descriptorPool = sets_pool_,
                                         .descriptorSetCount = 1,
                                         .pSetLayouts = &layout};
    CORTIQ_VK(call.vkAllocateDescriptorSets(device_->handle(), &allocate, &sets_[key]), "binding buffers");
    CORTIQ_RETURN_IF_ERROR(write_set(key));
    if (binds_bank(bank))
      bind_bank(sets_[key], bank);
  }
  VkCommandPoolCreateInfo commands{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                   .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                   .queueFamilyIndex = device_->queue_family()};
  CORTIQ_VK(call.vkCreateCommandPool(device_->handle(), &commands, nullptr, &commands_pool_), "recording commands");
  VkSemaphoreTypeCreateInfo timeline{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                     .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkSemaphoreCreateInfo semaphore{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &timeline};
  CORTIQ_VK(call.vkCreateSemaphore(device_->handle(), &semaphore, nullptr, &semaphore_), "recording commands");
  return {};
}

const WeightPlace* VulkanSession::place_of(uint32_t number) const {
  uint64_t rows = 0;
  if (!model_->matrix(number, rows).mixed)
    return &model_->weight(number);
  return blend_ ? blend_->find(number) : nullptr;
}

Status VulkanSession::write_set(const SetKey& key) {
  const auto [weight, weight2, layer, state, bank] = key;
  VkDescriptorBufferInfo buffers[kShaderBindings];
  const VkDescriptorBufferInfo vectors{(blend_ ? blend_->vectors() : model_->vectors()).handle(), 0, VK_WHOLE_SIZE};
  std::ranges::fill(buffers, vectors);
  if (weight != kNoIndex) {
    const WeightPlace* place = place_of(weight);
    if (!place) // of a blend that is not in force
      return {};
    uint64_t bytes = place->bytes;
    if (weight2 != kNoIndex) {
      const WeightPlace& second = model_->weight(weight2);
      if (second.buffer != place->buffer || second.offset <= place->offset)
        return invalid("the program for the GPU binds two weights together that others bind with more");
      bytes = second.offset + second.bytes - place->offset;
    }
    buffers[kBindWeight] = {place->buffer, place->offset, bytes};
  }
  buffers[kBindArena] = {arena_.handle(), 0, VK_WHOLE_SIZE};
  if (layer != kNoIndex)
    buffers[kBindCache] = {caches_[layers_[layer].buffer].handle(), layers_[layer].offset, layers_[layer].bytes};
  if (state != kNoIndex)
    buffers[kBindCache] = {states_.handle(), state_places_.at(state).offset, state_places_.at(state).bytes};
  buffers[kBindStep] = {step_.handle(), 0, VK_WHOLE_SIZE};
  buffers[kBindResult] = {result_.handle(), 0, VK_WHOLE_SIZE};
  VkWriteDescriptorSet writes[kShaderBindings];
  for (uint32_t i = 0; i < kShaderBindings; ++i)
    writes[i] = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                 .pNext = nullptr,
                 .dstSet = sets_.at(key),
                 .dstBinding = i,
                 .dstArrayElement = 0,
                 .descriptorCount = 1,
                 .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                 .pImageInfo = nullptr,
                 .pBufferInfo = &buffers[i],
                 .pTexelBufferView = nullptr};
  device_->call().vkUpdateDescriptorSets(device_->handle(), kShaderBindings, writes, 0, nullptr);
  return {};
}

Status VulkanSession::put_blend(const StepContext& context) {
  const formats::OverlaySelection* selection = context.overlay ? &context.overlay->selection : nullptr;
  if (!selection || !selection->blends() || (blend_ && blend_->shares() == selection->shares))
    return {};
  std::vector<uint32_t> needed;
  model_->for_each_dispatch([&](const artifact::GpuDispatch& d) {
    if (d.weight() != kNoIndex && model_->artifact().resolver.weights[d.weight()].mixed && runs(d, context))
      needed.push_back(d.weight());
  });
  std::ranges::sort(needed);
  needed.erase(std::ranges::unique(needed).begin(), needed.end());
  // Commands hold what was bound for them.
  drop_recordings(/*logits_only=*/false);
  CORTIQ_ASSIGN_OR_RETURN(blend_, BlendWeights::make(*model_, *selection, needed));
  for (const auto& [key, set] : sets_)
    CORTIQ_RETURN_IF_ERROR(write_set(key));
  return {};
}

} // namespace cortiq::runtime::vulkan
