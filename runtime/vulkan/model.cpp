#include "runtime/vulkan/model.h"

#include <algorithm>
#include <set>

#include "formats/artifact/shader_abi.h"
#include "formats/layout/layout.h"
#include "formats/layout/planes.h"
#include "formats/quote.h"
#include "runtime/vulkan/in_force.h"
#include "runtime/vulkan/module_needs.h"
#include "runtime/vulkan/split.h"

namespace cortiq::runtime::vulkan {
namespace {

constexpr uint64_t kMostBlockBytes = uint64_t{1} << 30;
// A matrix is read in vectors of 16 bytes up to its last byte.
constexpr uint64_t kReadPadding = 64;
constexpr uint64_t kBindingAlignment = 256;
constexpr uint64_t kShaderUnitBytes = 16;
constexpr uint64_t kMostGrowth = 3; // of a matrix whose size only its content tells, over the least

uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

std::span<const uint8_t> vector_bytes(const artifact::GpuVector& vector, const std::vector<WeightRef>& weights) {
  if (const auto* words = vector.words())
    return {words->Data(), words->size() * sizeof(uint32_t)};
  return weights[vector.weight()].bytes;
}

} // namespace

StatusOr<std::shared_ptr<const VulkanModel>> VulkanModel::make(const LoadedArtifact& artifact,
                                                               const artifact::GpuProgram& program,
                                                               std::shared_ptr<Device> device, StepRange range,
                                                               const GpuOptions& options) {
  std::shared_ptr<VulkanModel> model(new VulkanModel(artifact, program, std::move(device), *options.kv));
  model->range_ = std::move(range);
  for (uint32_t i = 0; program.stacks() && i < program.stacks()->size(); ++i)
    model->stacks_[program.stacks()->Get(i)->weights()->Get(0)] = program.stacks()->Get(i);
  CORTIQ_ASSIGN_OR_RETURN(model->pipelines_,
                          Pipelines::make(model->device_, program, model->kv_, options.tell_pipelines));
  CORTIQ_RETURN_IF_ERROR(model->make_bank(options));
  CORTIQ_RETURN_IF_ERROR(model->choose_steps());
  CORTIQ_RETURN_IF_ERROR(model->put_weights(options));
  model->pipelines_->keep();
  return std::shared_ptr<const VulkanModel>(std::move(model));
}

VulkanModel::Matrices VulkanModel::matrices(const artifact::GpuDispatch& d) const {
  const auto slices = static_cast<uint32_t>(artifact_.resolver.weights.size()); // are numbered behind the weights
  return {d.slice() == kNoIndex ? d.weight() : slices + d.slice(),
          d.slice2() == kNoIndex ? d.weight2() : slices + d.slice2()};
}

const WeightRef& VulkanModel::matrix(uint32_t number, uint64_t& rows) const {
  const std::vector<WeightRef>& table = artifact_.resolver.weights;
  if (number < table.size()) {
    rows = table[number].rows;
    return table[number];
  }
  const artifact::GpuSlice& slice = *program_.slices()->Get(number - static_cast<uint32_t>(table.size()));
  rows = slice.rows();
  return table[slice.weight()];
}

uint64_t VulkanModel::bound_bytes(uint32_t number) const {
  if (const auto stack = stacks_.find(number); stack != stacks_.end())
    return stack->second->weights()->size() * uint64_t{stack->second->units()} * kShaderUnitBytes + kReadPadding;
  uint64_t rows = 0;
  const WeightRef& weight = matrix(number, rows);
  if (rows == weight.rows && !weight.mixed)
    return weight.bytes.size() + kReadPadding;
  // Of a slice of a size that only its content tells: the most that it can be.
  const auto least = formats::packed_bytes(*weight.codec, weight.layout, rows, weight.cols); // checked at load
  const uint64_t bytes = least.ok() ? *least : 0;
  return (weight.codec->variable_size ? std::min<uint64_t>(weight.bytes.size(), kMostGrowth * bytes) : bytes) +
         kReadPadding;
}

uint32_t VulkanModel::module_of(const artifact::GpuDispatch& d) const {
  const bool sixteen = d.sixteen_module() != kNoIndex && bank_ && bank_->segments() == formats::kBankMostSegments;
  return sixteen ? d.sixteen_module() : d.module_();
}

/// The bank comes before the choice of steps: its shaders depend on how many segments it has.
Status VulkanModel::make_bank(const GpuOptions& options) {
  std::set<uint32_t> layers, modules, weights;
  for (uint32_t s = range_.first; s < range_.end; ++s)
    vulkan::for_each_dispatch(*program_.steps()->Get(s), [&](const artifact::GpuDispatch& d) {
      if (d.bank() != artifact::BankPart::None)
        layers.insert(d.bank_layer());
      for (const uint32_t index : {d.weight(), d.weight2()})
        if (index != kNoIndex)
          weights.insert(index);
    });
  if (layers.empty())
    return {};
  uint64_t others = program_.vector_floats() * sizeof(float);
  for (const uint32_t index : weights)
    others += bound_bytes(index);
  StatusOr<std::unique_ptr<Bank>> bank =
      Bank::make(device_, artifact_, *program_.bank(), {layers.begin(), layers.end()}, others, options);
  if (!bank.ok()) {
    bank_refusal_ = bank.status().message();
    return {};
  }
  bank_ = *std::move(bank);
  for (const Steps* steps : {program_.steps(), program_.single(), program_.far()})
    vulkan::for_each_dispatch(steps, [&](const artifact::GpuStep&, const artifact::GpuDispatch& d) {
      if (d.sixteen_module() != kNoIndex)
        modules.insert(module_of(d));
    });
  return pipelines_->use_bank(bank_->segments(), {modules.begin(), modules.end()});
}

std::string VulkanModel::unbindable(const artifact::GpuDispatch& d) const {
  if (d.bank() != artifact::BankPart::None && !bank_)
    return bank_refusal_;
  const auto [first, second] = matrices(d);
  uint64_t bytes = 0;
  for (const uint32_t number : {first, second})
    if (number != kNoIndex)
      bytes += round_up(bound_bytes(number), kBindingAlignment);
  if (bytes <= device_->largest_matrix())
    return {};
  return "weight " + formats::quote(artifact_.resolver.weights[d.weight()].entry->name()->string_view()) + " has " +
         std::to_string(bytes) + " bytes, " + device_->info().name + " binds at most " +
         std::to_string(device_->largest_matrix());
}

bool VulkanModel::in_parts(const artifact::GpuDispatch& d) const {
  return d.parts() && d.parts()->size() != 0 && !unbindable(d).empty() &&
         std::all_of(d.parts()->begin(), d.parts()->end(),
                     [&](const artifact::GpuDispatch* part) { return unbindable(*part).empty(); });
}

/// Which steps the CPU runs in place of the device: those with a part that it refuses, and what goes with them.
Status VulkanModel::choose_steps() {
  const auto& steps = *program_.steps();
  refused_.resize(steps.size());
  bool any = false;
  for (uint32_t s = range_.first; s < range_.end; ++s) {
    if (on_cpu(s))
      continue;
    std::string reason;
    for_each_part(*steps[s], [&](const artifact::GpuDispatch& part) {
      if (part.on_half() == artifact::GpuHalf::Only) // what it is for has a way round
        return;
      if (reason.empty())
        reason = unbindable(part);
      if (reason.empty() && !pipelines_->get(module_of(part)))
        reason = pipelines_->refusal(module_of(part));
    });
    if (reason.empty())
      continue;
    // Artifacts made before this was known do not say what the CPU would run.
    if (steps[s]->stages() == 0)
      return unsupported(reason);
    refused_[s] = reason;
    any = true;
  }
  for (bool changed = any; changed;) {
    changed = false;
    for (uint32_t s = range_.first; s < range_.end; ++s)
      for (uint32_t other = range_.first; other < range_.end && !refused_[s].empty(); ++other) {
        const bool joined = steps[s]->first_stage() == steps[other]->first_stage() ||
                            (steps[s]->together() != kNoIndex && steps[s]->together() == steps[other]->together());
        if (!joined || on_cpu(other))
          continue;
        if (steps[other]->stages() == 0)
          return unsupported(refused_[s]);
        refused_[other] = refused_[s];
        changed = true;
      }
  }
  bool banked = false;
  for (uint32_t s = range_.first; s < range_.end; ++s)
    if (!on_cpu(s))
      vulkan::for_each_dispatch(
          *steps[s], [&](const artifact::GpuDispatch& d) { banked = banked || d.bank() != artifact::BankPart::None; });
  if (!banked && bank_) {
    bank_.reset();
    bank_refusal_ = "the mixtures of the expert bank run on the CPU";
  }
  choose_units();
  picks_fit_ = range_.end == steps.size() && program_.picks() && program_.picks()->size() != 0;
  vulkan::for_each_dispatch(
      picks_fit_ ? program_.picks() : nullptr,
      [&](const artifact::GpuStep&, const artifact::GpuDispatch& d) { picks_fit_ = picks_fit_ && fits(d); });
  return {};
}

/// A unit's steps of one token have forms of values of their own, and share caches and states with the program's steps:
/// they serve where all of both are on this device.
void VulkanModel::choose_units() {
  const auto& steps = *program_.steps();
  for (uint32_t s = 0; s < steps.size(); ++s) {
    const bool here = range_.first <= s && s < range_.end && refused_[s].empty();
    const auto at = unit_fits_.try_emplace(steps[s]->unit(), true).first;
    at->second = at->second && here;
  }
  for (const Steps* list : {program_.single(), program_.far()})
    vulkan::for_each_dispatch(list, [&](const artifact::GpuStep& step, const artifact::GpuDispatch& d) {
      if (!fits(d))
        unit_fits_[step.unit()] = false;
    });
}

bool VulkanModel::all_pipelines(const artifact::GpuStep& step) const {
  bool all = true;
  for_each_part(step, [&](const artifact::GpuDispatch& part) { all = all && pipelines_->get(module_of(part)); });
  return all;
}

bool VulkanModel::all_pipelines(const Steps* steps) const {
  return std::ranges::all_of(*steps, [&](const artifact::GpuStep* step) { return all_pipelines(*step); });
}

bool VulkanModel::on_cpu(uint32_t index) const {
  return no_dispatches(*program_.steps()->Get(index)) || !refused_[index].empty();
}

bool VulkanModel::unit_runs(const Steps* list, uint32_t unit) const {
  bool any = false;
  for (uint32_t s = 0; s < list->size() && unit_fits(unit); ++s)
    if (list->Get(s)->unit() == unit) {
      any = true;
      if (!all_pipelines(*list->Get(s)))
        return false;
    }
  return any;
}

std::vector<VulkanModel::PlannedStep> VulkanModel::one_token(const Steps* list) const {
  std::vector<PlannedStep> out;
  std::map<uint32_t, bool> runs;
  for (uint32_t s = range_.first; s < range_.end; ++s) {
    const artifact::GpuStep* own = program_.steps()->Get(s);
    const auto [at, first] = runs.try_emplace(own->unit());
    if (first)
      at->second = unit_runs(list, own->unit());
    if (!at->second)
      out.push_back({own, on_cpu(s)});
    else if (first)
      for (const artifact::GpuStep* step : *list)
        if (step->unit() == own->unit())
          out.push_back({step, no_dispatches(*step)});
  }
  return out;
}

bool VulkanModel::picks_run() const {
  return picks_fit_ && all_pipelines(program_.picks());
}

bool VulkanModel::top_runs() const {
  return range_.end == program_.steps()->size() && program_.top() && program_.top()->size() != 0 &&
         program_.top_groups() != 0 && all_pipelines(program_.top());
}

bool VulkanModel::finish_runs() const {
  return program_.finish() && program_.finish()->size() == 1 && all_pipelines(program_.finish());
}

bool VulkanModel::half_runs() const {
  std::call_once(half_once_, [&] {
    bool any = false, all = (device_->offers() & formats::kNeedsHalfMatrices) != 0;
    const auto& steps = *program_.steps();
    // Another device may not have such matrices.
    for (const auto* slots : {&range_.imports, &range_.exports})
      for (const uint32_t slot : *slots)
        all = all && !program_.buffers()->Get(slot)->eight_bits();
    for (uint32_t s = range_.first; s < range_.end && all; ++s) {
      // The CPU knows rows in 8 bits, not those in f16.
      for (const auto* slots : {steps[s]->reads(), steps[s]->writes()})
        for (uint32_t i = 0; on_cpu(s) && slots && i < slots->size(); ++i)
          all = all && !program_.buffers()->Get(slots->Get(i))->eight_bits();
      if (!on_cpu(s))
        for_each_part(*steps[s], [&](const artifact::GpuDispatch& d) {
          if (d.on_half() == artifact::GpuHalf::Only)
            all = all && pipelines_->get(module_of(d));
          for (uint32_t i = 0; d.half() && i < d.half()->size(); ++i) {
            any = true;
            all = all && pipelines_->get(d.half()->Get(i)->module_());
          }
        });
    }
    half_runs_ = any && all;
  });
  return half_runs_;
}

Status VulkanModel::put_weights(const GpuOptions& options) {
  const std::vector<WeightRef>& table = artifact_.resolver.weights;
  // Weights that are bound together lie side by side.
  std::set<uint32_t> used;
  std::vector<std::vector<uint32_t>> units;
  for_each_dispatch([&](const artifact::GpuDispatch& d) {
    const auto [first, second] = matrices(d);
    if (second != kNoIndex && used.insert(first).second && used.insert(second).second)
      units.push_back({first, second});
  });
  for_each_dispatch([&](const artifact::GpuDispatch& d) {
    if (d.weight() != kNoIndex && !table[d.weight()].mixed && used.insert(matrices(d).first).second)
      units.push_back({matrices(d).first});
  });
  const uint64_t alignment = std::max(kBindingAlignment, device_->limits().minStorageBufferOffsetAlignment);
  auto bytes_of = [&](const std::vector<uint32_t>& unit) {
    uint64_t bytes = 0;
    for (const uint32_t index : unit)
      bytes += round_up(bound_bytes(index), alignment);
    return bytes;
  };
  const uint64_t all_vectors =
      (program_.vector_floats() + (artifact_.overlay.masks.size() + 1) * program_.mask_words()) * 4;
  uint64_t total = all_vectors, done = 0;
  for (const std::vector<uint32_t>& unit : units)
    total += bytes_of(unit);
  if (bank_)
    total += bank_->bytes();
  if (total > device_->info().memory)
    return unsupported("the model has " + std::to_string(total >> 20) + " MiB of weights, " + device_->info().name +
                       " has " + std::to_string(device_->info().memory >> 20) + " MiB of memory");
  if (options.room.memory != 0 && total > options.room.memory)
    return unsupported("the model has " + std::to_string(total >> 10) + " KiB of weights, --device-memory allows " +
                       std::to_string(options.room.memory >> 10) +
                       " KiB; of a mixture of experts compiled with --gpu-experts=bank a part is enough");
  CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<Uploader> uploader, Uploader::make(device_));
  auto report = [&](uint64_t bytes) {
    done += bytes;
    if (options.progress)
      options.progress(done, total);
  };

  CORTIQ_ASSIGN_OR_RETURN(vectors_,
                          Buffer::make(device_, std::max<uint64_t>(64, all_vectors), Place::kDevice, "vectors"));
  device_bytes_ += vectors_.bytes();
  CORTIQ_RETURN_IF_ERROR(write_vectors(*uploader, vectors_));
  report(all_vectors);

  // Blocks of many weights: a device may allow few allocations only.
  const uint64_t most = std::min(kMostBlockBytes, device_->largest_allocation());
  for (size_t next = 0; next < units.size();) {
    uint64_t size = 0;
    size_t last = next;
    for (; last < units.size() && (size == 0 || size + bytes_of(units[last]) <= most); ++last)
      size += bytes_of(units[last]);
    CORTIQ_ASSIGN_OR_RETURN(Buffer block, Buffer::make(device_, size, Place::kDevice, "weights"));
    device_bytes_ += size;
    uint64_t offset = 0;
    for (; next < last; ++next)
      for (const uint32_t index : units[next]) {
        const uint64_t bytes = bound_bytes(index);
        CORTIQ_RETURN_IF_ERROR(put_matrix(*uploader, block, offset, index));
        weights_[index] = {block.handle(), offset, bytes};
        offset += round_up(bytes, alignment);
        report(round_up(bytes, alignment));
      }
    blocks_.push_back(std::move(block));
  }
  if (bank_) {
    CORTIQ_RETURN_IF_ERROR(bank_->fill(*uploader, vectors_));
    device_bytes_ += bank_->bytes();
    report(bank_->bytes());
  }
  return uploader->finish();
}

Status VulkanModel::put_matrix(Uploader& uploader, const Buffer& block, uint64_t offset, uint32_t number) const {
  const std::vector<WeightRef>& table = artifact_.resolver.weights;
  if (const auto stack = stacks_.find(number); stack != stacks_.end()) {
    const uint64_t apart = uint64_t{stack->second->units()} * kShaderUnitBytes;
    for (uint32_t i = 0; i < stack->second->weights()->size(); ++i)
      CORTIQ_RETURN_IF_ERROR(uploader.write(block, offset + i * apart, table[stack->second->weights()->Get(i)].bytes));
    return {};
  }
  if (number < table.size())
    return uploader.write(block, offset, table[number].bytes);
  const artifact::GpuSlice& slice = *program_.slices()->Get(number - static_cast<uint32_t>(table.size()));
  const WeightRef& weight = table[slice.weight()];
  CORTIQ_ASSIGN_OR_RETURN(
      const std::vector<uint8_t> bytes,
      formats::slice_planes(*weight.codec, weight.bytes, weight.rows, weight.cols, slice.first(), slice.rows()));
  return uploader.write(block, offset, bytes);
}

Status VulkanModel::write_vectors(Uploader& uploader, const Buffer& to) const {
  for (const artifact::GpuVector* vector : *program_.vectors())
    if (vector->words() || !artifact_.resolver.weights[vector->weight()].mixed)
      CORTIQ_RETURN_IF_ERROR(
          uploader.write(to, vector->start() * 4, vector_bytes(*vector, artifact_.resolver.weights)));
  const std::vector<uint32_t> words = mask_words(program_, artifact_.overlay);
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  return words.empty() ? Status() : uploader.write(to, program_.vector_floats() * 4, {bytes, words.size() * 4});
}

uint32_t VulkanModel::mask_start(uint32_t mask) const {
  const uint64_t number = std::min<uint64_t>(mask, artifact_.overlay.masks.size());
  return static_cast<uint32_t>(program_.vector_floats() + number * program_.mask_words());
}

uint64_t VulkanModel::position_bytes(uint32_t layer) const {
  const KvShape& shape = artifact_.program.kv_layers[layer];
  const auto row = [&](uint64_t values) {
    return kv_ == KvType::kQ8 ? (round_up(values, formats::kCacheGroup) / formats::kCacheGroup + (values + 3) / 4) * 4
                              : values * (kv_ == KvType::kF16 ? 2 : 4);
  };
  return shape.kv_heads * (row(shape.k_dim) + row(shape.v_dim));
}

std::string VulkanModel::fallbacks() const {
  std::string out;
  const auto& steps = *program_.steps();
  uint32_t latest = kNoIndex;
  for (uint32_t s = range_.first; s < range_.end; ++s) {
    if (!on_cpu(s) || steps[s]->first_stage() == latest) // several of its steps may stand for one stage
      continue;
    latest = steps[s]->first_stage();
    const std::string reason = !refused_[s].empty() ? refused_[s] : steps[s]->reason() ? steps[s]->reason()->str() : "";
    out += std::string(out.empty() ? "" : "\n") + (steps[s]->name() ? steps[s]->name()->str() : "") +
           " on the CPU: " + reason;
  }
  return out;
}

std::string VulkanModel::refusals() const {
  std::vector<std::string> all = pipelines_->refusals();
  if (bank_ && !bank_->note().empty())
    all.push_back(bank_->note());
  if (program_.half_prompts() && !(device_->offers() & formats::kNeedsHalfMatrices))
    all.push_back("prompts run in 8 bits, as generated tokens: " + device_->info().name +
                  " has no products of matrices of f16");
  for (const std::string& reason : refused_)
    if (!reason.empty() && std::ranges::find(all, reason) == all.end())
      all.push_back(reason);
  std::string out;
  for (const std::string& reason : all)
    out += (out.empty() ? "" : "\n") + reason;
  return out;
}

} // namespace cortiq::runtime::vulkan

namespace cortiq::runtime {

namespace {

/// Whether the program's shaders take caches of another type than its own.
bool takes_other_caches(const artifact::GpuProgram& program) {
  bool all = true;
  vulkan::for_each_dispatch(program.steps(), [&](const artifact::GpuStep&, const artifact::GpuDispatch& d) {
    if (d.layer() == kNoIndex)
      return;
    const auto& code = *program.modules()->Get(d.module_())->code();
    all = all && vulkan::module_needs({code.data(), code.size()}).open_cache;
  });
  return all;
}

} // namespace

StatusOr<std::shared_ptr<const GpuModel>> load_gpu_model(const LoadedArtifact& artifact, const GpuOptions& asked) {
  if (!artifact.program_table->gpu())
    return unsupported("this artifact was compiled for the CPU only; compile the model with --target vulkan");
  GpuOptions options = asked;
  std::vector<std::shared_ptr<vulkan::Device>> devices;
  uint32_t offers = UINT32_MAX; // of all of them
  for (const uint32_t number : options.devices) {
    CORTIQ_ASSIGN_OR_RETURN(std::shared_ptr<vulkan::Device> device, vulkan::Device::open(number));
    offers &= device->offers();
    devices.push_back(std::move(device));
  }
  const artifact::GpuProgram* program = artifact.program_table->gpu();
  if (const auto* profiles = artifact.program_table->gpu_profiles())
    for (uint32_t i = 0; i < profiles->size() && program == artifact.program_table->gpu(); ++i)
      if ((profiles->Get(i)->needs() & ~offers) == 0)
        program = profiles->Get(i);
  CORTIQ_RETURN_IF_ERROR(vulkan::check_gpu_program(artifact, *program));
  const KvType own = program->cache_half() ? KvType::kF16 : KvType::kF32;
  options.kv = options.kv.value_or(own);
  if (options.kv != own && !takes_other_caches(*program))
    return unsupported(std::string("this artifact's shaders keep keys and values in ") + kv_type_name(own) +
                       ", not in " + kv_type_name(*options.kv) +
                       "; compile the model again, or run it with --device none");
  if (devices.size() > 1)
    return vulkan::SplitModel::load(artifact, *program, std::move(devices), options);
  CORTIQ_ASSIGN_OR_RETURN(
      std::shared_ptr<const vulkan::VulkanModel> model,
      vulkan::VulkanModel::make(artifact, *program, devices.at(0), {0, program->steps()->size()}, options));
  return std::shared_ptr<const GpuModel>(std::move(model));
}

} // namespace cortiq::runtime
