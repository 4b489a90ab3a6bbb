// Commands of a session: recorded once for every number of tokens and all that is in force.

#include <algorithm>
#include <utility>

#include "formats/artifact/shader_abi.h"
#include "runtime/vulkan/faults.h"
#include "runtime/vulkan/session.h"

namespace cortiq::runtime::vulkan {
namespace {

using namespace formats;

constexpr uint64_t kWideFrom = 16; // tokens that are worth a tile of cooperative matrices

uint32_t workgroups_in_z(const artifact::GpuDispatch& d, uint64_t tokens, uint64_t chunk) {
  const uint64_t rows = tokens * d.each();
  return static_cast<uint32_t>(std::min((rows + chunk - 1) / chunk + d.more(), rows));
}

} // namespace

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
  if (half_ && d.half() && d.half()->size() != 0) {
    const auto& forms = *d.half();
    const artifact::GpuForm* form = forms.Get(0);
    for (uint32_t i = 1; i < forms.size() && form->chunk() < tokens; ++i)
      form = forms.Get(i);
    return {form->module_(), form->groups(), form->chunk()};
  }
  static const bool wide = Faults::get().number("wide") != 0;
  if (wide && tokens >= kWideFrom && d.wide_module() != kNoIndex && (device_->offers() & kNeedsCooperative) &&
      model_->pipeline(d.wide_module()))
    return {d.wide_module(), d.wide_groups(), d.wide_chunk()};
  if ((tokens > 1 || half_) && d.many_module() != kNoIndex && model_->pipeline(d.many_module()))
    return {d.many_module(), d.many_groups(), d.many_chunk()};
  return {model_->module_of(d), d.groups(), d.chunk()};
}

/// Where the time of a step is counted: under its shaders and the shape of its matrices.
uint32_t VulkanSession::time_row(const artifact::GpuStep& step, uint64_t tokens) {
  std::string name;
  uint64_t rows = 0, cols = 0, bytes = 0;
  model_->for_each_part(step, [&](const artifact::GpuDispatch& d) {
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
  made.matrices += module == d.wide_module() || (half_ && d.half() && d.half()->size() != 0);
}

void VulkanSession::record_step(VkCommandBuffer commands, const artifact::GpuStep& step, uint64_t tokens,
                                Recording& made, StepKind kind) {
  model_->for_each_part(step, [&](const artifact::GpuDispatch& d) {
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

StatusOr<VulkanSession::Recording*> VulkanSession::recording(uint64_t tokens, uint64_t heads, Want want, bool far,
                                                             bool half) {
  const Key key{tokens, heads, heads == 0 ? Want::kIds : want, far, half, in_force(*now_)};
  half_ = half;
  const bool logits = key.want == Want::kLogits;
  if (logits)
    CORTIQ_RETURN_IF_ERROR(reserve_logits(heads));
  if (const auto found = recordings_.find(key); found != recordings_.end())
    return &found->second;
  if (tokens == 1 && !half && !single_planned_)
    plan_single();
  const std::vector<Part>& parts = tokens != 1 || half || single_parts_.empty() ? parts_
                                   : far && !far_parts_.empty()                 ? far_parts_
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

/// What the first submission begins with: counters start at zero.
Status VulkanSession::record_clear() {
  CORTIQ_ASSIGN_OR_RETURN(clear_, begin());
  device_->call().vkCmdFillBuffer(clear_, arena_.handle(), 0, std::min<uint64_t>(arena_.bytes(), kCounterWords * 4), 0);
  return finish(clear_, true, End::kPlain);
}

} // namespace cortiq::runtime::vulkan
