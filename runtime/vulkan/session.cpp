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
#include "runtime/vulkan/slot_forms.h"

namespace cortiq::runtime::vulkan {
namespace {

using namespace formats;

// A step that takes longer is waited for in the system, not by asking again and again.
constexpr auto kPolling = std::chrono::milliseconds(20);
constexpr uint64_t kResultWords = 4096;
constexpr uint64_t kMostCacheBytes = uint64_t{1} << 30;

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
  // A prompt goes the way of many tokens also where it is cut to one: its numbers do not depend on where that is.
  const uint64_t tokens = bucket_of(context.prompt != 0 ? std::max<uint64_t>(count, 2) : count, program_.max_batch());
  const uint64_t heads = head_count == 0 ? 0 : head_count == 1 ? 1 : tokens;
  const bool far = tokens == 1 && program_.far() && context.position >= program_.far_from();
  CORTIQ_RETURN_IF_ERROR(put_blend(context));
  const bool half = program_.half_prompts() && context.prompt == count && model_->half_runs();
  CORTIQ_ASSIGN_OR_RETURN(const Recording* recording, this->recording(tokens, heads, want, far && !half, half));
  CORTIQ_RETURN_IF_ERROR(put_states(context));
  fill_step(context, count, head_first, head_count);
  auto* results = reinterpret_cast<uint32_t*>(result_.mapped());
  results[kResultOverflow] = 0;
  const bool logits = head_count != 0 && want == Want::kLogits;
  Bank* const bank = model_->bank();
  const Tokens batch{count, head_first, head_count};
  auto held = bank ? bank->lock() : std::shared_lock<std::shared_mutex>();
  if (bank && blend_)
    CORTIQ_RETURN_IF_ERROR(blend_->follow(*bank));
  for (size_t i = 0; i < recording->segments.size(); ++i) {
    const bool tail = i + 1 == recording->segments.size() && logits && tokens != 1;
    if (tail)
      CORTIQ_RETURN_IF_ERROR(fill_tail(head_first, head_count));
    CORTIQ_RETURN_IF_ERROR(run_segment(*recording, i, context, batch, tail ? tail_ : VK_NULL_HANDLE, run_stages));
  }
  for (const artifact::GpuStep* remap : recording->remaps)
    for_each_dispatch(*remap, [&](const artifact::GpuDispatch& d) {
      if (d.bank() == artifact::BankPart::Remap)
        bank->use((remap->head() ? head_count : count) * chosen(bank->layer(d.bank_layer())));
    });
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
  counts_.matrices += recording->matrices;
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
