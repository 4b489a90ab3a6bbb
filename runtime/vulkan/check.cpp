#include "formats/artifact/shader_abi.h"
#include "formats/checked_math.h"
#include "formats/quote.h"
#include "runtime/vulkan/model.h"

namespace cortiq::runtime::vulkan {
namespace {

using formats::quote;

constexpr uint32_t kSpirvMagic = 0x07230203;
constexpr uint32_t kSpirvHeaderWords = 5;
constexpr uint64_t kMostFloats = UINT32_MAX;
constexpr uint32_t kMostShares = 1024;
constexpr uint64_t kMostGroups = uint64_t{1} << 31;
constexpr uint32_t kMostEach = 65535;
constexpr uint64_t kUnitBytes = 16;

class Check {
public:
  Check(const LoadedArtifact& artifact, const artifact::GpuProgram& program) : artifact_(artifact), program_(program) {}

  Status run() const {
    if (program_.max_batch() != artifact_.manifest->max_batch() || program_.arena_floats() > kMostFloats ||
        program_.vector_floats() > kMostFloats || program_.arena_floats() == 0)
      return invalid("its program for the GPU has an impossible batch or arena");
    for (const artifact::GpuModule* module : *program_.modules())
      if (module->code()->size() < kSpirvHeaderWords || module->code()->Get(0) != kSpirvMagic)
        return invalid("its shader " + quote(module->name()->string_view()) + " is no SPIR-V module");
    CORTIQ_RETURN_IF_ERROR(buffers());
    for (uint32_t i = 0; program_.stacks() && i < program_.stacks()->size(); ++i)
      CORTIQ_RETURN_IF_ERROR(stack(*program_.stacks()->Get(i)));
    for (const artifact::GpuVector* vector : *program_.vectors()) {
      const std::vector<WeightRef>& weights = artifact_.resolver.weights;
      if (vector->words()) {
        if (!formats::range_fits(vector->start(), vector->words()->size(), program_.vector_floats()))
          return invalid("its program for the GPU has a table that is none");
        continue;
      }
      if (vector->weight() >= weights.size())
        return invalid("its program for the GPU has a vector that is none");
      const WeightRef& weight = weights[vector->weight()];
      if (weight.codec->id != formats::CodecId::kF32 ||
          !formats::range_fits(vector->start(),
                               weight.mixed ? weight.rows * weight.cols : weight.bytes.size() / sizeof(float),
                               program_.vector_floats()))
        return invalid("its program for the GPU has a vector that is none");
    }
    if (program_.bank())
      CORTIQ_RETURN_IF_ERROR(bank(*program_.bank()));
    CORTIQ_RETURN_IF_ERROR(masks());
    for (uint32_t i = 0; program_.slices() && i < program_.slices()->size(); ++i)
      CORTIQ_RETURN_IF_ERROR(slice(*program_.slices()->Get(i)));
    for (const artifact::GpuStep* step : *program_.steps())
      CORTIQ_RETURN_IF_ERROR(this->step(*step));
    if (program_.top_groups() > kMostShares || program_.top_count() > kMostShares)
      return invalid("its program for the GPU leaves too many of the largest logits");
    for (const auto* steps : {program_.picks(), program_.single(), program_.far(), program_.top(), program_.finish()})
      for (uint32_t s = 0; steps && s < steps->size(); ++s)
        CORTIQ_RETURN_IF_ERROR(this->step(*steps->Get(s)));
    return {};
  }

private:
  Status buffers() const {
    const auto& slots = *artifact_.program_table->buffers();
    if (program_.buffers()->size() != slots.size())
      return invalid("its program for the GPU has another number of slots");
    for (uint32_t i = 0; i < slots.size(); ++i) {
      const artifact::GpuBuffer& buffer = *program_.buffers()->Get(i);
      const auto rows = formats::checked_mul(buffer.stride(), uint64_t{program_.max_batch()});
      const uint64_t needed = uint64_t{slots.Get(i)->elements()} * slots.Get(i)->records();
      if (!rows || !formats::range_fits(buffer.start(), *rows, program_.arena_floats()) ||
          (buffer.stride() != 0 && buffer.stride() < needed))
        return invalid("slot " + std::to_string(i) + " does not fit the arena of the GPU");
    }
    return {};
  }

  Status masks() const {
    const uint64_t all = (artifact_.overlay.masks.size() + 1) * uint64_t{program_.mask_words()};
    if (all > kMostFloats - program_.vector_floats())
      return invalid("its program for the GPU has more bits of masks than there can be");
    for (uint32_t i = 0; program_.mask_rows() && i < program_.mask_rows()->size(); ++i) {
      const artifact::GpuMaskRow& row = *program_.mask_rows()->Get(i);
      if (row.bits()->kind() > artifact::MaskKind::Experts ||
          !formats::range_fits(row.start(), (uint64_t{row.columns()} + 31) / 32, program_.mask_words()))
        return invalid("its program for the GPU has bits of masks outside of their place");
    }
    return {};
  }

  Status slice(const artifact::GpuSlice& slice) const {
    const std::vector<WeightRef>& weights = artifact_.resolver.weights;
    if (slice.weight() >= weights.size() || weights[slice.weight()].layout != formats::LayoutId::kPlanes ||
        weights[slice.weight()].mixed || slice.rows() == 0 ||
        !formats::range_fits(slice.first(), slice.rows(), weights[slice.weight()].rows))
      return invalid("its program for the GPU has a slice of rows that there are not");
    return {};
  }

  Status stack(const artifact::GpuStack& stack) const {
    const std::vector<WeightRef>& weights = artifact_.resolver.weights;
    for (const uint32_t index : *stack.weights())
      if (index >= weights.size() || weights[index].layout != formats::LayoutId::kPlanes ||
          weights[index].bytes.size() > uint64_t{stack.units()} * kUnitBytes)
        return invalid("its program for the GPU stacks weights that are not laid out for it");
    return stack.weights()->size() != 0 ? Status() : invalid("its program for the GPU has an empty stack");
  }

  /// Matrices of a role, all alike: as `first`, once that is known.
  Status bank_role(const flatbuffers::Vector<uint32_t>& list, const WeightRef*& first) const {
    const std::vector<WeightRef>& weights = artifact_.resolver.weights;
    for (const uint32_t index : list) {
      if (index >= weights.size() || weights[index].mixed || weights[index].layout != formats::LayoutId::kVerbatim ||
          weights[index].bytes.empty() || weights[index].bytes.size() % sizeof(uint32_t) != 0)
        return invalid("its expert bank has a matrix that is none");
      first = first ? first : &weights[index];
      if (weights[index].codec != first->codec || weights[index].rows != first->rows ||
          weights[index].cols != first->cols || weights[index].bytes.size() != first->bytes.size())
        return invalid("its expert bank has matrices of several shapes");
    }
    return {};
  }

  Status bank(const artifact::GpuBank& bank) const {
    const WeightRef *outer = nullptr, *down = nullptr;
    for (const artifact::GpuBankLayer* layer : *bank.layers()) {
      const uint32_t experts = layer->gate()->size();
      if (experts == 0 || layer->up()->size() != experts || layer->down()->size() != experts ||
          !formats::range_fits(layer->remap(), experts, program_.vector_floats()))
        return invalid("its expert bank has another number of matrices than of experts");
      CORTIQ_RETURN_IF_ERROR(bank_role(*layer->gate(), outer));
      CORTIQ_RETURN_IF_ERROR(bank_role(*layer->up(), outer));
      CORTIQ_RETURN_IF_ERROR(bank_role(*layer->down(), down));
      const std::vector<SlotRef>& slots = artifact_.resolver.slots;
      for (const uint32_t slot : {layer->x(), layer->ids(), layer->weights(), layer->sum(), layer->cold()})
        if (slot >= slots.size())
          return invalid("its expert bank names a slot that the program does not have");
      const auto stride = [&](uint32_t slot) { return program_.buffers()->Get(slot)->stride(); };
      const auto is = [&](uint32_t slot, artifact::BufferKind kind, uint64_t elements) {
        const artifact::Buffer& buffer = *artifact_.program_table->buffers()->Get(slot);
        return buffer.kind() == kind && buffer.elements() == elements && buffer.records() == 1;
      };
      const uint64_t chosen = slots[layer->ids()].elements;
      if (!is(layer->ids(), artifact::BufferKind::I32, chosen) ||
          !is(layer->weights(), artifact::BufferKind::F32, chosen) ||
          !is(layer->sum(), artifact::BufferKind::F32, down->rows) || slots[layer->x()].elements != outer->cols ||
          chosen == 0 || chosen > experts || stride(layer->ids()) < 2 * chosen || stride(layer->x()) == 0 ||
          stride(layer->cold()) < 2 * down->rows ||
          !formats::range_fits(layer->first_stage(), layer->stages(), artifact_.program.stages.size()))
        return invalid("its expert bank has rows of another length than its matrices");
    }
    return {};
  }

  Status step(const artifact::GpuStep& step) const {
    const std::string name = "step " + quote(step.name() ? step.name()->string_view() : "");
    const bool on_cpu = no_dispatches(step);
    if ((on_cpu && step.stages() == 0) ||
        !formats::range_fits(step.first_stage(), step.stages(), artifact_.program.stages.size()))
      return invalid(name + " runs stages that the program does not have");
    for (const auto* slots : {step.reads(), step.writes()})
      for (uint32_t i = 0; slots && i < slots->size(); ++i)
        if (slots->Get(i) >= program_.buffers()->size())
          return invalid(name + " names a slot that the program does not have");
    if (on_cpu)
      return {};
    for (const artifact::GpuDispatch* dispatch : *step.dispatches())
      CORTIQ_RETURN_IF_ERROR(this->dispatch(*dispatch).with_prefix(name));
    return {};
  }

  Status dispatch(const artifact::GpuDispatch& d) const {
    for (uint32_t i = 0; d.parts() && i < d.parts()->size(); ++i) {
      const artifact::GpuDispatch& part = *d.parts()->Get(i);
      if (part.parts() || part.slice() == kNoIndex || part.weight() != d.weight() || part.weight2() != d.weight2())
        return invalid("it has a part that is none");
      CORTIQ_RETURN_IF_ERROR(dispatch(part));
    }
    for (const auto& [number, weight] : {std::pair(d.slice(), d.weight()), std::pair(d.slice2(), d.weight2())})
      if (number != kNoIndex && (!program_.slices() || number >= program_.slices()->size() ||
                                 program_.slices()->Get(number)->weight() != weight))
        return invalid("it has a slice that there is not");
    if ((d.slice() == kNoIndex) != (d.slice2() == kNoIndex) && d.weight2() != kNoIndex)
      return invalid("it has a pair that is none");
    const bool many = d.many_module() != kNoIndex;
    if (d.wide_module() != kNoIndex && (d.wide_module() >= program_.modules()->size() || d.wide_groups() == 0 ||
                                        d.wide_groups() > kMostGroups || d.wide_chunk() == 0))
      return invalid("it has a shader that there is not, or an impossible number of workgroups");
    for (uint32_t i = 0; d.half() && i < d.half()->size(); ++i)
      if (const artifact::GpuForm& form = *d.half()->Get(i); form.module_() >= program_.modules()->size() ||
                                                             form.groups() == 0 || form.groups() > kMostGroups ||
                                                             form.chunk() == 0)
        return invalid("it has a shader that there is not, or an impossible number of workgroups");
    if (d.module_() >= program_.modules()->size() || (many && d.many_module() >= program_.modules()->size()))
      return invalid("it has a shader that there is not");
    if (d.groups() == 0 || d.groups() > kMostGroups || d.chunk() == 0 ||
        (many && (d.many_groups() == 0 || d.many_groups() > kMostGroups || d.many_chunk() == 0)))
      return invalid("it has an impossible number of workgroups");
    const bool products = d.bank() == artifact::BankPart::GateUp || d.bank() == artifact::BankPart::Down;
    if (products ? d.sixteen_module() >= program_.modules()->size() : d.sixteen_module() != kNoIndex)
      return invalid("it has a shader that there is not");
    if (d.bank() > artifact::BankPart::Combine ||
        (d.bank() != artifact::BankPart::None &&
         (!program_.bank() || d.bank_layer() >= program_.bank()->layers()->size())))
      return invalid("it has a part of an expert bank that there is not");
    if (d.push()->size() != formats::kPushWords)
      return invalid("it has " + std::to_string(d.push()->size()) + " push constants");
    if (d.layer() != kNoIndex && d.layer() >= artifact_.facts.kv_layers.size())
      return invalid("it has a cache that there is not");
    if (d.each() == 0 || d.each() > kMostEach || d.more() > kMostEach)
      return invalid("it has an impossible number of workgroups");
    if (d.mask_row() != kNoIndex && (!program_.mask_rows() || d.mask_row() >= program_.mask_rows()->size()))
      return invalid("it has bits of masks that there are not");
    if (d.when() && d.when()->tap() != kNoIndex && d.when()->tap() >= artifact_.program.taps.size())
      return invalid("it has a tap that there is not");
    if (d.state() != kNoIndex && d.state() >= artifact_.program.states.size())
      return invalid("it has a recurrent state that there is not");
    if (d.groups_y() == 0 || (d.weight2() != kNoIndex && (d.weight() == kNoIndex || d.weight() == d.weight2())))
      return invalid("it has a pair that is none");
    const std::vector<WeightRef>& weights = artifact_.resolver.weights;
    for (const uint32_t index : {d.weight(), d.weight2()}) {
      if (index == kNoIndex)
        continue;
      if (index >= weights.size() || weights[index].layout != formats::LayoutId::kPlanes)
        return invalid("it has a weight that is not laid out for the GPU");
      const WeightRef& weight = weights[index];
      if (weight.mixed && d.weight2() != kNoIndex)
        return invalid("it has a pair that is none");
      if (weight.codec->variable_size)
        CORTIQ_RETURN_IF_ERROR(
            formats::check_packed(*weight.codec, weight.layout, weight.bytes, weight.rows, weight.cols));
    }
    return {};
  }

  const LoadedArtifact& artifact_;
  const artifact::GpuProgram& program_;
};

} // namespace

Status check_gpu_program(const LoadedArtifact& artifact, const artifact::GpuProgram& program) {
  return Check(artifact, program).run();
}

} // namespace cortiq::runtime::vulkan
