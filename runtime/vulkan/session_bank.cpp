// What a session does for experts in a bank: the CPU runs those that are missing beside the device.

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/artifact/shader_abi.h"
#include "runtime/vulkan/session.h"

namespace cortiq::runtime::vulkan {

using namespace formats;

void VulkanSession::bind_bank(VkDescriptorSet set, artifact::BankPart part) const {
  const Bank& bank = *model_->bank();
  const std::vector<Buffer>& from = part == artifact::BankPart::Down ? bank.down() : bank.outer();
  VkDescriptorBufferInfo segments[kBankMostSegments];
  for (uint32_t i = 0; i < bank.segments(); ++i)
    segments[i] = {from[i < from.size() ? i : 0].handle(), 0, VK_WHOLE_SIZE};
  const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                   .dstSet = set,
                                   .dstBinding = kBindBank,
                                   .descriptorCount = bank.segments(),
                                   .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                   .pBufferInfo = segments};
  device_->call().vkUpdateDescriptorSets(device_->handle(), 1, &write, 0, nullptr);
}

/// The halves of rows that are the CPU's; the others are the device's own.
void VulkanSession::copy_missing(VkCommandBuffer commands, const artifact::GpuBankLayer& layer, uint64_t tokens) const {
  const artifact::GpuBuffer& buffer = *program_.buffers()->Get(layer.cold());
  std::vector<VkBufferCopy> rows;
  for (uint64_t t = 0; t < tokens; ++t) {
    const uint64_t start = (buffer.start() + t * buffer.stride() + buffer.stride() / 2) * sizeof(float);
    rows.push_back({start, start, buffer.stride() / 2 * sizeof(float)});
  }
  device_->call().vkCmdCopyBuffer(commands, mirror_.handle(), arena_.handle(), static_cast<uint32_t>(rows.size()),
                                  rows.data());
}

uint64_t VulkanSession::chosen(const artifact::GpuBankLayer& layer) const {
  return model_->artifact().resolver.slots[layer.ids()].elements;
}

const artifact::GpuDispatch* VulkanSession::bank_dispatch(const artifact::GpuStep& step, artifact::BankPart part) {
  for (const artifact::GpuDispatch* d : *step.dispatches())
    if (d->bank() == part)
      return d;
  return nullptr;
}

void VulkanSession::run_missing(const artifact::GpuStep& step, const StepContext& context, const Tokens& tokens,
                                const RunStages& run_stages) {
  const uint32_t number = bank_dispatch(step, artifact::BankPart::Remap)->bank_layer();
  const artifact::GpuBankLayer& layer = model_->bank()->layer(number);
  const std::vector<SlotRef>& slots = model_->artifact().resolver.slots;
  const SlotRef &ids = slots[layer.ids()], &weights = slots[layer.weights()], &sum = slots[layer.sum()];
  const uint64_t k = chosen(layer), first = step.head() ? tokens.head_first : 0,
                 end = step.head() ? first + tokens.head_count : tokens.count;
  const artifact::GpuBuffer &choices = *program_.buffers()->Get(layer.ids()),
                            &cold = *program_.buffers()->Get(layer.cold());
  auto* mirror = reinterpret_cast<float*>(mirror_.mapped());
  bool any = false;
  for (uint64_t t = first; t < end; ++t) {
    const auto* missing = reinterpret_cast<const uint32_t*>(result_.mapped()) + missing_word_ + t * missing_words(k);
    const auto* all = reinterpret_cast<const uint32_t*>(mirror + choices.start() + t * choices.stride());
    const uint64_t count = std::min<uint64_t>(missing[0], k);
    auto* numbers = reinterpret_cast<int32_t*>(ids.bytes(context.arena, t));
    for (uint64_t j = 0; j < k; ++j) {
      numbers[j] = j < count ? static_cast<int32_t>(missing[1 + 2 * j]) : -1;
      weights.f32(context.arena, t)[j] = j < count ? std::bit_cast<float>(missing[2 + 2 * j]) : 0.0f;
    }
    for (uint64_t j = 0; j < k; ++j)
      if (all[j] < layer.gate()->size())
        model_->bank()->use(number, all[j],
                            std::find(numbers, numbers + count, static_cast<int32_t>(all[j])) != numbers + count);
    any = any || count != 0;
  }
  if (any) {
    to_cpu(layer.x(), context.arena, tokens.count);
    StepContext missing = context;
    missing.missing_experts = true;
    run_stages(missing, layer.first_stage(), layer.stages());
  }
  for (uint64_t t = first; t < end; ++t) {
    float* row = mirror + cold.start() + t * cold.stride() + cold.stride() / 2;
    if (any)
      std::memcpy(row, sum.f32(context.arena, t), sum.elements * sizeof(float));
    else
      std::fill_n(row, sum.elements, 0.0f);
  }
}

Status VulkanSession::run_segment(const Recording& recording, size_t number, const StepContext& context,
                                  const Tokens& tokens, VkCommandBuffer tail, const RunStages& run_stages) {
  const Segment& segment = recording.segments[number];
  if (segment.beside) // it was submitted with the one before
    return {};
  const VkCommandBuffer commands[2] = {segment.commands, tail};
  CORTIQ_RETURN_IF_ERROR(submit({commands, tail ? size_t{2} : size_t{1}}));
  if (segment.missing && recording.segments[number + 1].beside)
    CORTIQ_RETURN_IF_ERROR(submit({&recording.segments[number + 1].commands, 1}, true));
  CORTIQ_RETURN_IF_ERROR(wait());
  if (segment.missing)
    run_missing(*segment.missing, context, tokens, run_stages);
  return segment.then ? run_cpu(*segment.then, context, tokens.count, run_stages) : Status();
}

} // namespace cortiq::runtime::vulkan
