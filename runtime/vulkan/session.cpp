#include "runtime/vulkan/session.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "formats/artifact/shader_abi.h"
#include "runtime/overlay/overlay.h"
#include "runtime/vulkan/faults.h"
#include "runtime/vulkan/slot_forms.h"

namespace cortiq::runtime::vulkan {
namespace {

using namespace formats;

// A step that takes longer is waited for in the system, not by asking again and again.
constexpr auto kPolling = std::chrono::milliseconds(20);
constexpr uint64_t kResultWords = 4096;
constexpr uint64_t kWideFrom = 16; // tokens that are worth a tile of cooperative matrices
constexpr uint64_t kMostCacheBytes = uint64_t{1} << 30;

uint32_t workgroups_in_z(const artifact::GpuDispatch& d, uint64_t tokens, uint64_t chunk) {
  const uint64_t rows = tokens * d.each();
  return static_cast<uint32_t>(std::min((rows + chunk - 1) / chunk + d.more(), rows));
}

/// Steps of so many tokens share their commands; what is too much of them returns at once.
uint64_t bucket_of(uint64_t count, uint64_t most) {
  for (const uint64_t bucket : {1, 4, 16, 64, 256, 1024, 4096})
    if (count <= bucket)
      return std::min<uint64_t>(bucket, most);
  return most;
}

} // namespace

StatusOr<std::unique_ptr<VulkanSession>> VulkanSession::make(std::shared_ptr<const VulkanModel> model,
                                                             uint64_t positions, bool profile) {
  std::unique_ptr<VulkanSession> out(new VulkanSession(std::move(model), profile));
  CORTIQ_RETURN_IF_ERROR(out->reserve(positions));
  CORTIQ_RETURN_IF_ERROR(out->reserve_states());
  if (const StepRange& range = out->model_->range(); !range.imports.empty() || !range.exports.empty()) {
    // Before the first step: its neighbour may be there first.
    CORTIQ_ASSIGN_OR_RETURN(
        out->mirror_, Buffer::make(out->device_, out->arena_.bytes(), Place::kRead, "copies for the next device"));
  }
  CORTIQ_RETURN_IF_ERROR(out->make_sets());
  CORTIQ_RETURN_IF_ERROR(out->record_clear());
  CORTIQ_RETURN_IF_ERROR(out->clear_caches());
  out->plan();
  return out;
}

VulkanSession::VulkanSession(std::shared_ptr<const VulkanModel> model, bool profile)
    : model_(std::move(model)), device_(model_->shared_device()), program_(model_->program()), profile_(profile) {}

VulkanSession::~VulkanSession() {
  if (submitted_ != 0)
    device_->idle();
  if (device_->given_up())
    return;
  const VolkDeviceTable& call = device_->call();
  if (semaphore_)
    call.vkDestroySemaphore(device_->handle(), semaphore_, nullptr);
  if (sets_pool_)
    call.vkDestroyDescriptorPool(device_->handle(), sets_pool_, nullptr);
  if (commands_pool_)
    call.vkDestroyCommandPool(device_->handle(), commands_pool_, nullptr);
}

Status VulkanSession::reserve(uint64_t positions) {
  const ResolvedProgram& resolved = model_->artifact().program;
  const uint64_t range = device_->largest_binding();
  if (program_.arena_floats() * 4 > range)
    return unsupported("the work space of " + std::to_string(program_.max_batch()) + " tokens has " +
                       std::to_string(program_.arena_floats() * 4) + " bytes, " + device_->info().name +
                       " binds at most " + std::to_string(range) + "; compile with a smaller --max-batch");
  CORTIQ_ASSIGN_OR_RETURN(arena_, Buffer::make(device_, program_.arena_floats() * 4, Place::kDevice, "work space"));
  const uint64_t alignment = std::max<uint64_t>(256, device_->limits().minStorageBufferOffsetAlignment);
  const uint64_t most = std::min(kMostCacheBytes, device_->largest_allocation());
  std::vector<uint64_t> cache_bytes;
  std::vector<bool> here(resolved.kv_layers.size()); // caches that the device has
  model_->for_each_dispatch([&](const artifact::GpuDispatch& d) {
    if (d.layer() != kNoIndex)
      here[d.layer()] = true;
  });
  for (uint32_t layer = 0; layer < resolved.kv_layers.size(); ++layer) {
    if (!here[layer]) {
      layers_.push_back({0, 0, 0});
      continue;
    }
    const uint64_t bytes = resolved.kv_layers[layer].capacity(positions) * model_->position_bytes(layer);
    if (bytes > range)
      return unsupported("a layer's cache of " + std::to_string(positions) + " positions has " + std::to_string(bytes) +
                         " bytes, " + device_->info().name + " binds at most " + std::to_string(range) +
                         "; use a smaller --max-context");
    // Few allocations, each within what the device allows at once.
    if (cache_bytes.empty() || (cache_bytes.back() != 0 && cache_bytes.back() + bytes > most))
      cache_bytes.push_back(0);
    layers_.push_back({cache_bytes.size() - 1, cache_bytes.back(), bytes});
    cache_bytes.back() += (bytes + alignment - 1) / alignment * alignment;
  }
  for (const uint64_t bytes : cache_bytes) {
    CORTIQ_ASSIGN_OR_RETURN(Buffer cache,
                            Buffer::make(device_, std::max<uint64_t>(bytes, 64), Place::kDevice, "cache"));
    caches_.push_back(std::move(cache));
  }
  uint64_t words = kStepIds + program_.max_batch();
  for (const RopeTableRef& table : resolved.rope_tables) {
    rope_words_.push_back(words);
    words += 2 * program_.max_batch() * table.inverse_frequencies.size();
  }
  serial_word_ = words;
  CORTIQ_ASSIGN_OR_RETURN(step_, Buffer::make(device_, (words + 4) * 4, Place::kUpload, "a step's numbers"));
  top_word_ = kResultIds + program_.max_batch();
  const uint64_t top_words = uint64_t{program_.top_groups()} * (4 + 2 * uint64_t{program_.top_count()});
  missing_word_ = top_word_ + top_words;
  uint64_t most_missing = 0;
  for (uint32_t l = 0; program_.bank() && l < program_.bank()->layers()->size(); ++l)
    most_missing = std::max(most_missing, missing_words(chosen(*program_.bank()->layers()->Get(l))));
  uint64_t result_words = missing_word_ + program_.max_batch() * most_missing;
  for (const ResidualTap& tap : resolved.taps) {
    tap_words_.push_back(result_words);
    result_words += 2 * tap.elements;
  }
  CORTIQ_ASSIGN_OR_RETURN(result_, Buffer::make(device_, std::max<uint64_t>(kResultWords, result_words) * 4,
                                                Place::kRead, "a step's results"));
  std::memset(result_.mapped(), 0, result_.bytes());
  const artifact::GpuBuffer& logits = *program_.buffers()->Get(model_->artifact().program_table->logits());
  logits_start_ = logits.start();
  logits_stride_ = logits.stride();
  return {};
}

void VulkanSession::plan() {
  const Steps& steps = *program_.steps();
  for (uint32_t s = model_->range().first; s < model_->range().end; ++s)
    plan(*steps[s], model_->on_cpu(s), parts_);
}

void VulkanSession::plan_single() {
  single_planned_ = true;
  for (const auto& [list, parts] :
       {std::pair(program_.single(), &single_parts_), std::pair(program_.far(), &far_parts_)})
    if (list && list->size() != 0)
      for (const auto& [step, cpu] : model_->one_token(list))
        plan(*step, cpu, *parts);
}

void VulkanSession::plan(const artifact::GpuStep& step, bool cpu, std::vector<Part>& parts) const {
  if (!cpu) {
    parts.push_back({&step, false, 0, 0, {}, {}});
    return;
  }
  // Several steps of the device may stand for one stage.
  if (!parts.empty() && parts.back().cpu && step.first_stage() >= parts.back().first_stage &&
      step.first_stage() < parts.back().first_stage + parts.back().stages)
    return;
  // Neighbouring stages of the CPU are one part: what one writes and the next reads stays there.
  if (parts.empty() || !parts.back().cpu || parts.back().first_stage + parts.back().stages != step.first_stage())
    parts.push_back({nullptr, true, step.first_stage(), 0, {}, {}});
  Part& part = parts.back();
  part.stages += step.stages();
  for (uint32_t i = 0; step.reads() && i < step.reads()->size(); ++i) {
    const uint32_t slot = step.reads()->Get(i);
    if (program_.buffers()->Get(slot)->stride() != 0 && std::ranges::find(part.writes, slot) == part.writes.end() &&
        std::ranges::find(part.reads, slot) == part.reads.end())
      part.reads.push_back(slot);
  }
  for (uint32_t i = 0; step.writes() && i < step.writes()->size(); ++i) {
    const uint32_t slot = step.writes()->Get(i);
    if (program_.buffers()->Get(slot)->stride() != 0 && std::ranges::find(part.writes, slot) == part.writes.end())
      part.writes.push_back(slot);
  }
}

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
  if (model_->bank()) // its table of slots is the model's, a blend's vectors are the session's
    return unsupported("blends of skills do not run with an expert bank; compile without --gpu-experts");
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

/// Positions that a skipped layer left out are read by the layer when it is not skipped any more.
Status VulkanSession::clear_caches() {
  bool gated = false;
  model_->for_each_dispatch([&](const artifact::GpuDispatch& d) {
    gated = gated || (d.layer() != kNoIndex && d.when() && d.when()->gate() != kNoIndex);
  });
  if (!gated)
    return {};
  CORTIQ_ASSIGN_OR_RETURN(VkCommandBuffer commands, begin());
  for (const Buffer& cache : caches_)
    device_->call().vkCmdFillBuffer(commands, cache.handle(), 0, VK_WHOLE_SIZE, 0);
  return run_once(commands);
}

// ---- Recording ----

void VulkanSession::barrier(VkCommandBuffer commands, bool copied_before, bool copies_after) const {
  VkMemoryBarrier memory{
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = VkAccessFlags(copied_before ? VK_ACCESS_TRANSFER_WRITE_BIT : 0) | VK_ACCESS_SHADER_WRITE_BIT,
      .dstAccessMask = VkAccessFlags(VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT) |
                       (copies_after ? VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT : 0)};
  device_->call().vkCmdPipelineBarrier(
      commands,
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VkPipelineStageFlags(copied_before ? VK_PIPELINE_STAGE_TRANSFER_BIT : 0),
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VkPipelineStageFlags(copies_after ? VK_PIPELINE_STAGE_TRANSFER_BIT : 0), 0,
      1, &memory, 0, nullptr, 0, nullptr);
}

/// What a dispatch is for so many tokens.
VulkanSession::Form VulkanSession::form_of(const artifact::GpuDispatch& d, uint64_t tokens) const {
  // What is made for several tokens may be refused: one token after the other then.
  static const bool wide =
      Faults::get().number("wide") == 1; // quicker, but what it computes depends on how a prompt is cut
  if (wide && tokens >= kWideFrom && d.wide_module() != kNoIndex && (device_->offers() & kNeedsCooperative) &&
      model_->pipeline(d.wide_module()))
    return {d.wide_module(), d.wide_groups(), d.wide_chunk()};
  if (tokens > 1 && d.many_module() != kNoIndex && model_->pipeline(d.many_module()))
    return {d.many_module(), d.many_groups(), d.many_chunk()};
  return {model_->module_of(d), d.groups(), d.chunk()};
}

/// Where the time of a step is counted: under its shaders and the shape of its matrices.
uint32_t VulkanSession::time_row(const artifact::GpuStep& step, uint64_t tokens) {
  std::string name;
  uint64_t rows = 0, cols = 0, bytes = 0;
  for (const artifact::GpuDispatch* whole : *step.dispatches())
    model_->for_each_part(*whole, [&](const artifact::GpuDispatch& d) {
      if (!runs_now(d))
        return;
      const std::string_view module = program_.modules()->Get(form_of(d, tokens).module)->name()->string_view();
      if (const std::string_view part = module.substr(0, module.find(' ')); name.find(part) == name.npos)
        name += (name.empty() ? "" : "+") + std::string(part);
      const auto [first, second] = model_->matrices(d);
      for (const uint32_t number : {first, second})
        if (number != kNoIndex) {
          uint64_t taken = 0;
          const WeightRef& weight = model_->matrix(number, taken);
          rows += taken;
          cols = weight.cols;
          bytes += weight.bytes.size() * taken / weight.rows;
        }
    });
  return times_.row("gpu " + name, rows, cols, bytes);
}

void VulkanSession::record_dispatch(VkCommandBuffer commands, const artifact::GpuDispatch& d, uint64_t tokens,
                                    Recording& made, StepKind kind) {
  const VolkDeviceTable& call = device_->call();
  const uint64_t widest = device_->limits().maxComputeWorkGroupCount[0];
  const auto [module, groups, chunk] = form_of(d, tokens);
  const uint32_t x = static_cast<uint32_t>(std::min(groups, widest));
  call.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, model_->pipeline(module));
  const VkDescriptorSet set = sets_.at(set_key(d));
  const VkPipelineLayout layout = binds_bank(d.bank()) ? model_->bank_layout() : model_->pipeline_layout();
  if (set != bound_)
    call.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, nullptr);
  bound_ = set;
  uint32_t push[kPushWords];
  std::copy(d.push()->begin(), d.push()->end(), push);
  if (d.layer() != kNoIndex && d.weight() == kNoIndex)
    push[kPushLayer] = d.layer() + 1;
  if (kind == StepKind::kTop) {
    push[kPushAux] = static_cast<uint32_t>(serial_word_ + 1);
    push[kPushOut] = static_cast<uint32_t>(top_word_);
  }
  if (kind == StepKind::kFinish)
    push[kPushAux] = static_cast<uint32_t>(serial_word_);
  if (d.mask_row() != kNoIndex)
    push[kPushMask] = model_->mask_start(in_force(*now_).mask) + program_.mask_rows()->Get(d.mask_row())->start();
  if (d.when() && d.when()->tap() != kNoIndex)
    push[kPushOut] = static_cast<uint32_t>(tap_words_[d.when()->tap()]);
  if (const auto [first, second] = model_->matrices(d); second != kNoIndex)
    push[kPushWeight2] = static_cast<uint32_t>((model_->weight(second).offset - model_->weight(first).offset) / 16);
  if (binds_bank(d.bank()))
    push[kPushSegmentSlots] = model_->bank()->segment_slots();
  if (d.bank() == artifact::BankPart::Combine)
    push[kPushVector] = model_->bank()->complete() ? 1 : 2; // the second one is the CPU's
  if (d.bank() == artifact::BankPart::Remap)
    push[kPushThird] = static_cast<uint32_t>(missing_word_);
  call.vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushWords * 4, push);
  call.vkCmdDispatch(commands, x, d.groups_y() != 1 ? d.groups_y() : static_cast<uint32_t>((groups + x - 1) / x),
                     workgroups_in_z(d, tokens, chunk));
  ++made.dispatches;
}

void VulkanSession::record_step(VkCommandBuffer commands, const artifact::GpuStep& step, uint64_t tokens,
                                Recording& made, StepKind kind) {
  for (const artifact::GpuDispatch* whole : *step.dispatches())
    model_->for_each_part(*whole, [&](const artifact::GpuDispatch& d) {
      if (runs_now(d))
        record_dispatch(commands, d, tokens, made, kind);
    });
}

StatusOr<VkCommandBuffer> VulkanSession::begin() {
  const VolkDeviceTable& call = device_->call();
  VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                       .commandPool = commands_pool_,
                                       .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                       .commandBufferCount = 1};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  CORTIQ_VK(call.vkAllocateCommandBuffers(device_->handle(), &allocate, &commands), "recording commands");
  CORTIQ_RETURN_IF_ERROR(restart(commands));
  return commands;
}

Status VulkanSession::restart(VkCommandBuffer commands) {
  VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                 .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
  CORTIQ_VK(device_->call().vkBeginCommandBuffer(commands, &begin), "recording commands");
  bound_ = VK_NULL_HANDLE;
  return {};
}

void VulkanSession::copy_logits(VkCommandBuffer commands, uint64_t first, uint64_t count) const {
  const VkBufferCopy rows{(logits_start_ + first * logits_stride_) * 4, 0, count * logits_stride_ * 4};
  device_->call().vkCmdCopyBuffer(commands, arena_.handle(), logits_.handle(), 1, &rows);
}

void VulkanSession::copy_rows(VkCommandBuffer commands, const std::vector<uint32_t>& slots, uint64_t tokens,
                              bool to_host) const {
  std::vector<VkBufferCopy> regions;
  for (const uint32_t slot : slots) {
    const artifact::GpuBuffer& buffer = *program_.buffers()->Get(slot);
    regions.push_back({buffer.start() * 4, buffer.start() * 4, buffer.stride() * tokens * 4});
  }
  if (!regions.empty())
    device_->call().vkCmdCopyBuffer(commands, to_host ? arena_.handle() : mirror_.handle(),
                                    to_host ? mirror_.handle() : arena_.handle(), static_cast<uint32_t>(regions.size()),
                                    regions.data());
}

Status VulkanSession::finish(VkCommandBuffer commands, bool copied, End end) {
  const VolkDeviceTable& call = device_->call();
  if (end == End::kSerial) {
    // The step's number, behind everything: the host reads it without asking the driver. A dispatch is quicker than a
    // copy, which other work of the device than shaders would have to be waited for.
    if (!copied && model_->finish_runs()) {
      barrier(commands, false, false);
      Recording uncounted;
      record_step(commands, *program_.finish()->Get(0), 1, uncounted, StepKind::kFinish);
    } else {
      barrier(commands, copied, true);
      const VkBufferCopy serial{serial_word_ * 4, kResultStep * 4, 4};
      call.vkCmdCopyBuffer(commands, step_.handle(), result_.handle(), 1, &serial);
    }
    VkMemoryBarrier memory{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                           .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                           .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    call.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                              VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }
  CORTIQ_VK(call.vkEndCommandBuffer(commands), "recording commands");
  return {};
}

Status VulkanSession::reserve_logits(uint64_t rows) {
  if (logits_.bytes() >= rows * logits_stride_ * 4)
    return {};
  // What was recorded copies into the buffer that this one replaces.
  drop_recordings(/*logits_only=*/true);
  CORTIQ_ASSIGN_OR_RETURN(logits_, Buffer::make(device_, rows * logits_stride_ * 4, Place::kRead, "logits"));
  return {};
}

void VulkanSession::drop_recordings(bool logits_only) {
  std::erase_if(recordings_, [&](const auto& row) {
    if (logits_only && row.first.want != Want::kLogits)
      return false;
    for (const Segment& segment : row.second.segments)
      device_->call().vkFreeCommandBuffers(device_->handle(), commands_pool_, 1, &segment.commands);
    return true;
  });
}

StatusOr<VulkanSession::Recording*> VulkanSession::recording(uint64_t tokens, uint64_t heads, Want want, bool far) {
  const Key key{tokens, heads, heads == 0 ? Want::kIds : want, far, in_force(*now_)};
  const bool logits = key.want == Want::kLogits;
  if (logits)
    CORTIQ_RETURN_IF_ERROR(reserve_logits(heads));
  if (const auto found = recordings_.find(key); found != recordings_.end())
    return &found->second;
  if (tokens == 1 && !single_planned_)
    plan_single();
  const std::vector<Part>& parts = tokens != 1 || single_parts_.empty() ? parts_
                                   : far && !far_parts_.empty()         ? far_parts_
                                                                        : single_parts_;
  const StepRange& range = model_->range();
  const bool lacks = model_->bank() && !model_->bank()->complete();
  const bool mirrored = lacks || std::ranges::any_of(parts, [](const Part& part) { return part.cpu; }) ||
                        !range.imports.empty() || !range.exports.empty();
  if (mirrored && !mirror_.handle()) {
    CORTIQ_ASSIGN_OR_RETURN(mirror_, Buffer::make(device_, arena_.bytes(), Place::kRead, "copies for the CPU"));
  }
  Recording made;
  CORTIQ_ASSIGN_OR_RETURN(VkCommandBuffer commands, begin());
  if (profile_) {
    const size_t most = 2 * parts.size() + 16;
    if (auto clock = Timestamps::make(device_, static_cast<uint32_t>(most)); clock.ok())
      made.clock = *std::move(clock);
  }
  auto mark = [&](uint32_t row) {
    if (made.clock)
      made.clock->mark(commands, row);
  };
  if (made.clock)
    made.clock->begin(commands);
  mark(UINT32_MAX);
  bool copied = true; // by whatever was submitted before
  if (!range.imports.empty()) {
    barrier(commands, true, true);
    copy_rows(commands, range.imports, tokens, false);
  }
  auto step = [&](const artifact::GpuStep& s, StepKind kind = StepKind::kPlain) {
    const uint64_t count = s.head() ? heads : tokens;
    if (count == 0 || std::ranges::none_of(*s.dispatches(), [&](const auto* d) { return runs_now(*d); }))
      return;
    barrier(commands, copied, false);
    ++made.barriers;
    copied = false;
    record_step(commands, s, count, made, kind);
    if (made.clock)
      mark(time_row(s, count));
  };
  bool beside = false; // what is recorded needs nothing that the CPU does
  const auto cut = [&](Segment segment, End end) -> Status {
    segment.commands = commands;
    segment.beside = std::exchange(beside, false) && end == End::kPlain;
    CORTIQ_RETURN_IF_ERROR(finish(commands, copied || end == End::kSerial, end));
    made.segments.push_back(segment);
    CORTIQ_ASSIGN_OR_RETURN(commands, begin());
    copied = true;
    return {};
  };
  for (const Part& part : parts) {
    if (!part.cpu) {
      const artifact::GpuDispatch *remap = bank_dispatch(*part.step, artifact::BankPart::Remap),
                                  *combine = bank_dispatch(*part.step, artifact::BankPart::Combine);
      const bool runs = (part.step->head() ? heads : tokens) != 0;
      if (combine && lacks && runs) {
        CORTIQ_RETURN_IF_ERROR(cut({}, beside ? End::kPlain : End::kSerial));
        barrier(commands, true, true);
        copy_missing(commands, model_->bank()->layer(combine->bank_layer()), tokens);
      }
      step(*part.step);
      if (remap && runs && !lacks)
        made.remaps.push_back(part.step);
      if (remap && runs && lacks) {
        const artifact::GpuBankLayer& layer = model_->bank()->layer(remap->bank_layer());
        barrier(commands, copied, true);
        copy_rows(commands, {layer.x(), layer.ids()}, tokens, true);
        CORTIQ_RETURN_IF_ERROR(cut({.missing = part.step}, End::kSerial));
        beside = true;
      }
      continue;
    }
    barrier(commands, copied, true);
    copy_rows(commands, part.reads, tokens, true);
    CORTIQ_RETURN_IF_ERROR(cut({.then = &part}, End::kSerial));
    barrier(commands, true, true);
    copy_rows(commands, part.writes, tokens, false);
    mark(UINT32_MAX);
  }
  if (heads != 0 && key.want == Want::kIds && range.end == program_.steps()->size())
    for (const artifact::GpuStep* s : *program_.picks())
      step(*s);
  if (key.want == Want::kTop)
    for (const artifact::GpuStep* s : *program_.top())
      step(*s, StepKind::kTop);
  if (!range.exports.empty()) {
    barrier(commands, copied, true);
    copy_rows(commands, range.exports, tokens, true);
    copied = true;
  }
  // Where the rows of several tokens stand is known by the step only.
  const bool here = logits && tokens == 1;
  if (here) {
    barrier(commands, copied, true);
    copy_logits(commands, 0, 1);
  }
  CORTIQ_RETURN_IF_ERROR(finish(commands, here || copied, logits && !here ? End::kPlain : End::kSerial));
  made.segments.push_back({commands});
  return &recordings_.emplace(key, std::move(made)).first->second;
}

// ---- Running ----

void VulkanSession::fill_step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count) {
  auto* words = reinterpret_cast<uint32_t*>(step_.mapped());
  words[kStepTokens] = static_cast<uint32_t>(count);
  words[kStepPosition] = static_cast<uint32_t>(context.position);
  words[kStepHeadFirst] = static_cast<uint32_t>(head_first);
  words[kStepHeadCount] = static_cast<uint32_t>(head_count);
  if (context.tokens)
    std::memcpy(words + kStepIds, context.tokens, count * sizeof(uint32_t));
  words[serial_word_ + 1] = std::bit_cast<uint32_t>(1 / ask_.temperature);
  words[serial_word_ + 2] = ask_.limit;
  const auto& tables = model_->artifact().program.rope_tables;
  for (size_t t = 0; t < tables.size(); ++t) {
    const uint64_t pairs = tables[t].inverse_frequencies.size();
    std::memcpy(words + rope_words_[t], context.rope_cos[t], count * pairs * sizeof(float));
    std::memcpy(words + rope_words_[t] + program_.max_batch() * pairs, context.rope_sin[t],
                count * pairs * sizeof(float));
  }
}

/// What the first submission begins with: counters start at zero.
Status VulkanSession::record_clear() {
  CORTIQ_ASSIGN_OR_RETURN(clear_, begin());
  device_->call().vkCmdFillBuffer(clear_, arena_.handle(), 0, std::min<uint64_t>(arena_.bytes(), kCounterWords * 4), 0);
  return finish(clear_, true, End::kPlain);
}

Status VulkanSession::submit(std::span<const VkCommandBuffer> commands, bool beside) {
  std::vector<VkCommandBuffer> first;
  if (clear_) {
    first.push_back(std::exchange(clear_, VK_NULL_HANDLE));
    first.insert(first.end(), commands.begin(), commands.end());
    commands = first;
  }
  ++submitted_;
  if (!beside) {
    awaited_ = submitted_;
    reinterpret_cast<uint32_t*>(step_.mapped())[serial_word_] = static_cast<uint32_t>(submitted_);
  }
  VkTimelineSemaphoreSubmitInfo timeline{.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                         .signalSemaphoreValueCount = 1,
                                         .pSignalSemaphoreValues = &submitted_};
  VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                    .pNext = &timeline,
                    .commandBufferCount = static_cast<uint32_t>(commands.size()),
                    .pCommandBuffers = commands.data(),
                    .signalSemaphoreCount = 1,
                    .pSignalSemaphores = &semaphore_};
  CORTIQ_VK(device_->submit(info, VK_NULL_HANDLE), "running a step");
  return {};
}

Status VulkanSession::wait() {
  // A device that is the CPU needs the core that asking would take.
  if (device_->properties().deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) {
    const std::atomic_ref<uint32_t> serial(*reinterpret_cast<uint32_t*>(result_.mapped()));
    const auto until = std::chrono::steady_clock::now() + kPolling;
    for (unsigned i = 0; serial.load(std::memory_order_acquire) != static_cast<uint32_t>(awaited_); ++i)
      if (i % 256 == 255 && std::chrono::steady_clock::now() > until)
        break;
    if (serial.load(std::memory_order_acquire) == static_cast<uint32_t>(awaited_))
      return {};
  }
  CORTIQ_VK(device_->wait(semaphore_, awaited_), "waiting for a step");
  return {};
}

void VulkanSession::to_cpu(uint32_t slot, uint8_t* arena, uint64_t count) const {
  const artifact::GpuBuffer& buffer = *program_.buffers()->Get(slot);
  const artifact::Buffer& row = *model_->artifact().program_table->buffers()->Get(slot);
  const SlotRef& to = model_->artifact().resolver.slots[slot];
  const auto* from = reinterpret_cast<const float*>(mirror_.mapped()) + buffer.start();
  for (uint64_t t = 0; t < count; ++t, from += buffer.stride())
    row_to_cpu(buffer, row, from, to.bytes(arena, t));
}

void VulkanSession::from_cpu(uint32_t slot, const uint8_t* arena, uint64_t count) const {
  const artifact::GpuBuffer& buffer = *program_.buffers()->Get(slot);
  const artifact::Buffer& row = *model_->artifact().program_table->buffers()->Get(slot);
  const SlotRef& from = model_->artifact().resolver.slots[slot];
  auto* to = reinterpret_cast<float*>(mirror_.mapped()) + buffer.start();
  for (uint64_t t = 0; t < count; ++t, to += buffer.stride())
    row_from_cpu(buffer, row, arena + from.offset + t * from.stride, to);
}

void VulkanSession::carry_to(VulkanSession& next, uint64_t count) const {
  for (const uint32_t slot : model_->range().exports) {
    const artifact::GpuBuffer& buffer = *program_.buffers()->Get(slot);
    std::memcpy(next.mirror_.mapped() + buffer.start() * 4, mirror_.mapped() + buffer.start() * 4,
                buffer.stride() * count * 4);
  }
}

Status VulkanSession::run_cpu(const Part& part, const StepContext& context, uint64_t count,
                              const RunStages& run_stages) {
  for (const uint32_t slot : part.reads)
    to_cpu(slot, context.arena, count);
  run_stages(context, part.first_stage, part.stages);
  for (const uint32_t slot : part.writes)
    from_cpu(slot, context.arena, count);
  counts_.cpu_stages += part.stages;
  return {};
}

Status VulkanSession::step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count,
                           Want want, const RunStages& run_stages) {
  now_ = &context;
  const Status status = run_step(context, count, head_first, head_count, want, run_stages);
  now_ = nullptr;
  failed_ = !status.ok();
  return status;
}

Status VulkanSession::run_step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count,
                               Want want, const RunStages& run_stages) {
  const uint64_t tokens = bucket_of(count, program_.max_batch());
  const uint64_t heads = head_count == 0 ? 0 : head_count == 1 ? 1 : tokens;
  const bool far = tokens == 1 && program_.far() && context.position >= program_.far_from();
  CORTIQ_RETURN_IF_ERROR(put_blend(context));
  CORTIQ_ASSIGN_OR_RETURN(const Recording* recording, this->recording(tokens, heads, want, far));
  CORTIQ_RETURN_IF_ERROR(put_states(context));
  fill_step(context, count, head_first, head_count);
  auto* results = reinterpret_cast<uint32_t*>(result_.mapped());
  results[kResultOverflow] = 0;
  const bool logits = head_count != 0 && want == Want::kLogits;
  Bank* const bank = model_->bank();
  const Tokens batch{count, head_first, head_count};
  auto held = bank ? bank->lock() : std::shared_lock<std::shared_mutex>();
  for (size_t i = 0; i < recording->segments.size(); ++i) {
    const bool tail = i + 1 == recording->segments.size() && logits && tokens != 1;
    if (tail)
      CORTIQ_RETURN_IF_ERROR(fill_tail(head_first, head_count));
    CORTIQ_RETURN_IF_ERROR(run_segment(*recording, i, context, batch, tail ? tail_ : VK_NULL_HANDLE, run_stages));
  }
  for (const artifact::GpuStep* remap : recording->remaps)
    for (const artifact::GpuDispatch* d : *remap->dispatches())
      if (d->bank() == artifact::BankPart::Remap)
        bank->use((remap->head() ? head_count : count) * chosen(bank->layer(d->bank_layer())));
  if (bank) {
    held.unlock();
    CORTIQ_RETURN_IF_ERROR(bank->settle(model_->vectors()));
  }
  overflowed_ = results[kResultOverflow];
  add_taps(context);
  states_position_ = context.position + count;
  states_newer_ = !state_places_.empty();
  if (recording->clock)
    times_.add(*recording->clock);
  ++counts_.steps;
  counts_.dispatches += recording->dispatches;
  counts_.barriers += recording->barriers;
  if (!logits)
    return {};
  const SlotRef& slot = model_->artifact().program.logits;
  const auto* rows = reinterpret_cast<const float*>(logits_.mapped());
  for (uint64_t h = 0; h < head_count; ++h)
    std::memcpy(slot.f32(context.arena, head_first + h), rows + h * logits_stride_, slot.elements * sizeof(float));
  return {};
}

void VulkanSession::add_taps(const StepContext& context) const {
  if (!context.taps)
    return;
  std::vector<bool> here(tap_words_.size()); // taps that the device has
  model_->for_each_dispatch([&](const artifact::GpuDispatch& d) {
    if (d.when() && d.when()->tap() != kNoIndex)
      here[d.when()->tap()] = true;
  });
  for (size_t tap = 0; tap < tap_words_.size(); ++tap) {
    const uint64_t elements = model_->artifact().program.taps[tap].elements;
    const auto* sums = reinterpret_cast<const float*>(result_.mapped()) + tap_words_[tap];
    for (uint64_t i = 0; here[tap] && i < elements; ++i)
      context.taps[tap][i] += static_cast<double>(sums[i]) + sums[elements + i];
  }
}

// ---- Recurrent states ----

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

Status VulkanSession::run_once(VkCommandBuffer commands) {
  Status status = finish(commands, true, End::kSerial);
  if (status.ok())
    status = submit({&commands, 1});
  if (status.ok())
    status = wait();
  if (status.ok())
    device_->call().vkFreeCommandBuffers(device_->handle(), commands_pool_, 1, &commands);
  return status;
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

Status VulkanSession::bring_states(std::span<float* const> states) {
  if (!states_newer_)
    return {};
  CORTIQ_RETURN_IF_ERROR(copy_states(true));
  for (const auto& [state, place] : state_places_)
    std::memcpy(states[state], static_cast<const uint8_t*>(host_states_.mapped()) + place.offset, place.bytes);
  states_newer_ = false;
  return {};
}

/// Commands that copy logits of rows that are known only now.
Status VulkanSession::fill_tail(uint64_t first, uint64_t count) {
  if (!tail_) {
    CORTIQ_ASSIGN_OR_RETURN(tail_, begin());
  } else {
    CORTIQ_RETURN_IF_ERROR(restart(tail_));
  }
  barrier(tail_, true, true);
  copy_logits(tail_, first, count);
  return finish(tail_, true, End::kSerial);
}

Status VulkanSession::fetch_row(uint8_t* arena, uint64_t row) {
  CORTIQ_RETURN_IF_ERROR(reserve_logits(1));
  CORTIQ_RETURN_IF_ERROR(fill_tail(row, 1));
  CORTIQ_RETURN_IF_ERROR(submit({&tail_, 1}));
  CORTIQ_RETURN_IF_ERROR(wait());
  const SlotRef& slot = model_->artifact().program.logits;
  std::memcpy(slot.f32(arena, row), logits_.mapped(), slot.elements * sizeof(float));
  return {};
}

/// The records of shaders/ops/top_logits.glsl, joined.
TopLogits VulkanSession::top() const {
  const uint32_t count = program_.top_count(), words = 4 + 2 * count;
  const auto* record = reinterpret_cast<const uint32_t*>(result_.mapped()) + top_word_;
  TopLogits out;
  out.largest = out.rest = -std::numeric_limits<float>::infinity();
  bool bad = false;
  for (uint32_t g = 0; g < program_.top_groups(); ++g)
    out.largest = std::max(out.largest, std::bit_cast<float>(record[g * words]));
  top_values_.clear();
  top_ids_.clear();
  for (uint32_t g = 0; g < program_.top_groups(); ++g, record += words) {
    const auto largest = std::bit_cast<float>(record[0]), sum = std::bit_cast<float>(record[1]);
    bad = bad || record[2] != 0;
    if (std::isfinite(largest))
      out.sum += sum * std::exp((static_cast<double>(largest) - out.largest) / ask_.temperature);
    out.rest = std::max(out.rest, std::bit_cast<float>(record[4 + count - 1]));
    for (uint32_t i = 0; i < count; ++i)
      if (const auto value = std::bit_cast<float>(record[4 + i]); std::isfinite(value)) {
        top_values_.push_back(value);
        top_ids_.push_back(record[4 + count + i]);
      }
  }
  // With a value that is no number the row itself has to say so.
  if (!bad) {
    out.values = top_values_;
    out.ids = top_ids_;
  }
  return out;
}

uint64_t VulkanSession::device_bytes() const {
  uint64_t bytes =
      (blend_ ? blend_->device_bytes() : 0) + states_.bytes() + arena_.bytes() + step_.bytes() + result_.bytes();
  for (const Buffer& cache : caches_)
    bytes += cache.bytes();
  return bytes;
}

uint32_t VulkanSession::picked(uint64_t head) const {
  return reinterpret_cast<const uint32_t*>(result_.mapped())[kResultIds + head];
}

std::string VulkanSession::report() const {
  std::string out = model_->bank() ? model_->bank()->describe() : std::string();
  const std::string refusals = model_->refusals();
  for (std::string_view rest = refusals; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    out += "GPU, not as compiled: " + std::string(line) + "\n";
  }
  return out;
}

StatusOr<std::unique_ptr<GpuSession>> VulkanModel::session(uint64_t positions, bool profile) const {
  CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<VulkanSession> out,
                          VulkanSession::make(shared_from_this(), positions, profile));
  return std::unique_ptr<GpuSession>(std::move(out));
}

} // namespace cortiq::runtime::vulkan
