#include "compiler/gpu/LowerToGpu.h"

#include <algorithm>
#include <numeric>

#include "compiler/emit/rows/rows.h"
#include "compiler/gpu/Bank.h"
#include "compiler/gpu/Experts.h"
#include "compiler/gpu/Fusion.h"
#include "compiler/gpu/Overlay.h"
#include "compiler/gpu/Product.h"
#include "compiler/gpu/Units.h"
#include "compiler/passes/StageEffects.h"

using namespace mlir;

namespace cortiq::compiler {
namespace {

constexpr uint64_t kMaxFloats = UINT32_MAX;
// Of a share of the logits: enough that the forty that samplers keep are seldom too many for one of a hundred shares.
constexpr uint32_t kTopLogits = 8;

/// The KV layer of a call; kAbsent when it has none.
uint32_t layerOf(const artifact::OpUnion& op) {
  if (const auto* prep = op.AsAttentionPrepOp())
    return prep->layer;
  if (const auto* attention = op.AsAttentionOp())
    return attention->layer;
  return kAbsent;
}

class Lowering {
public:
  Lowering(ModuleOp module, GpuWeights& weights, artifact::ProgramT& program, bool eightBits)
      : numbers_(module), manifest_(weights.manifest), program_(program),
        gpu_(std::make_unique<artifact::GpuProgramT>()), builder_(weights, program, *gpu_), experts_(program, builder_),
        uses_(program.buffers.size()), eightBits_(eightBits), half_(weights.half) {
    kernel::ProgramOp op = *module.getOps<kernel::ProgramOp>().begin();
    for (auto alloc : op.getBody().front().getOps<kernel::AllocOp>())
      numbers_.addSlot(alloc.getBuffer());
    for (auto stage : op.getBody().front().getOps<kernel::StageOp>())
      stageOps_.push_back(stage);
  }

  /// None when it would be the program that there is without 8 bits.
  StatusOr<std::unique_ptr<artifact::GpuProgramT>> run() {
    gpu_->max_batch = manifest_.max_batch;
    gpu_->cache_half = manifest_.kv_f16;
    if (!eightBits_)
      builder_.setPlain();
    readStages();
    choose();
    findTogether();
    makeCalls(many_, /*single=*/false);
    makeCalls(single_, /*single=*/true);
    findOrders();
    noteUses(many_);
    Fusion(builder_, experts_, uses_, [&](uint32_t slot) { return eightBits_ && readInEightBits(slot); }).run(single_);
    noteUses(single_);
    units_ = findUnits(stages_.size(), single_, experts_.groups());
    if (eightBits_ && !chooseEightBits())
      return std::unique_ptr<artifact::GpuProgramT>();
    if (eightBits_ && half_)
      builder_.setHalf();
    CORTIQ_RETURN_IF_ERROR(placeSlots());
    CORTIQ_RETURN_IF_ERROR(addBank(experts_.groups(), builder_, *gpu_));
    builder_.setSquaresStart(gpu_->arena_floats);
    gpu_->arena_floats += 2 * GpuBuilder::kSquaresFloats;
    builder_.setScratchStart(gpu_->arena_floats);
    CORTIQ_RETURN_IF_ERROR(lowerAll(many_, gpu_->steps));
    CORTIQ_RETURN_IF_ERROR(addPicks());
    builder_.setSingle();
    CORTIQ_RETURN_IF_ERROR(lowerAll(single_, gpu_->single));
    if (manifest_.max_context > kFarFrom) {
      builder_.setFar();
      CORTIQ_RETURN_IF_ERROR(lowerAll(single_, gpu_->far));
      gpu_->far_from = kFarFrom;
      if (!builder_.cut())
        gpu_->far.clear();
    }
    gpu_->arena_floats += builder_.scratchFloats();
    if (gpu_->arena_floats > kMaxFloats || gpu_->vector_floats > kMaxFloats)
      return unsupported("a batch of " + std::to_string(gpu_->max_batch) +
                         " tokens does not fit the GPU's arena; use a smaller --max-batch");
    gpu_->needs = eightBits_ ? formats::kNeedsIntegerDot | formats::kNeedsSubgroups : 0;
    return std::move(gpu_);
  }

private:
  using Stages = std::vector<GpuStage>;
  using Steps = std::vector<std::unique_ptr<artifact::GpuStepT>>;

  void readStages() {
    for (size_t s = 0; s < stageOps_.size(); ++s) {
      const uint32_t number = static_cast<uint32_t>(s);
      GpuStage& stage = stages_.emplace_back(
          GpuStage{number, number, program_.stages[s]->head, program_.stages[s]->name, {}, {}, {}, {}});
      const StageEffects effects = StageEffects::of(stageOps_[s]);
      for (Value v : effects.reads)
        stage.reads.push_back(numbers_.slot(v));
      for (Value v : effects.writes)
        stage.writes.push_back(numbers_.slot(v));
    }
  }

  /// Which stages the GPU runs. A cache is wholly on one side, and so is a mixture of experts.
  void choose() {
    for (size_t s = 0; s < stages_.size(); ++s)
      for (const auto& call : program_.stages[s]->calls)
        if (stages_[s].reason.empty())
          stages_[s].reason = refusal(*call);
    keepScalesTogether();
    for (bool changed = true; changed;) {
      changed = false;
      llvm::DenseMap<std::pair<uint32_t, uint32_t>, std::string> reasons; // of layers and mixtures
      const auto partOf = [&](const artifact::OpUnion& op) {
        if (const uint32_t layer = layerOf(op); layer != kAbsent)
          return std::pair(0u, layer);
        const uint32_t mixture = experts_.of(op);
        return std::pair(mixture == kAbsent ? 2u : 1u, mixture == kAbsent ? 0u : mixture);
      };
      for (size_t s = 0; s < stages_.size(); ++s)
        for (const auto& call : program_.stages[s]->calls)
          if (const auto part = partOf(call->op); part.first != 2 && reasons[part].empty())
            reasons[part] = stages_[s].reason;
      for (size_t s = 0; s < stages_.size(); ++s)
        for (const auto& call : program_.stages[s]->calls)
          if (const auto part = partOf(call->op);
              part.first != 2 && stages_[s].reason.empty() && !reasons[part].empty()) {
            stages_[s].reason = reasons[part];
            changed = true;
          }
    }
    for (size_t s = 0; s < stages_.size(); ++s)
      for (const auto& call : program_.stages[s]->calls)
        if (const uint32_t mixture = experts_.of(call->op); mixture != kAbsent && !stages_[s].reason.empty())
          experts_.groups()[mixture].reason = stages_[s].reason;
  }

  std::string refusal(const artifact::CallT& call) const {
    if (const uint32_t mixture = experts_.of(call.op); mixture != kAbsent)
      return call.alternatives.empty() ? experts_.groups()[mixture].reason : "its experts depend on the skill in force";
    for (const auto& [op, when] : formsOf(call)) {
      const GpuOpRow* row = findGpuOp(op->type);
      if (!row)
        return std::string("there is no shader for ") + artifact::EnumNameOp(op->type);
      if (std::string reason = row->refuse(*op, builder_); !reason.empty())
        return reason;
    }
    return {};
  }

  /// Column scales multiply what a product reads: on the CPU before it is quantized, on the GPU in the product. Both
  /// ends have to be on one side.
  void keepScalesTogether() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t s = 0; s < stages_.size(); ++s)
        for (const auto& call : program_.stages[s]->calls) {
          const artifact::QuantizeOpT* quantize = call->op.AsQuantizeOp();
          if (!quantize || quantize->column_scale == kAbsent)
            continue;
          for (size_t r = 0; r < stages_.size(); ++r) {
            const bool reads = std::ranges::any_of(
                stages_[r].reads, [&](uint32_t slot) { return slot == quantize->out || slot == quantize->act_out; });
            if (!reads || stages_[r].reason.empty() == stages_[s].reason.empty())
              continue;
            stages_[stages_[r].reason.empty() ? r : s].reason = "its column scales are applied on the CPU";
            changed = true;
          }
        }
    }
  }

  /// What has to be on one side, should a device refuse a part of it: a cache's stages, column scales with the products
  /// that they are for, and the stages of a mixture of experts, which are one range.
  void findTogether() {
    std::vector<uint32_t> of(stages_.size());
    std::iota(of.begin(), of.end(), 0u);
    const auto join = [&](size_t a, size_t b) {
      const uint32_t from = of[a], to = of[b];
      std::ranges::replace(of, from, to);
    };
    llvm::DenseMap<uint32_t, uint32_t> ofLayer;
    for (size_t s = 0; s < stages_.size(); ++s)
      for (const auto& call : program_.stages[s]->calls) {
        if (const uint32_t layer = layerOf(call->op); layer != kAbsent)
          if (const auto [at, first] = ofLayer.try_emplace(layer, s); !first)
            join(s, at->second);
        const artifact::QuantizeOpT* quantize = call->op.AsQuantizeOp();
        if (!quantize || quantize->column_scale == kAbsent)
          continue;
        for (size_t r = 0; r < stages_.size(); ++r)
          if (std::ranges::any_of(stages_[r].reads,
                                  [&](uint32_t slot) { return slot == quantize->out || slot == quantize->act_out; }))
            join(r, s);
      }
    for (const ExpertGroup& group : experts_.groups())
      for (uint32_t s = group.first; group.reason.empty() && s <= group.last; ++s)
        join(s, group.first);
    together_ = std::move(of);
  }

  /// The stages that the CPU would run in a stage's place: itself, or the mixture of experts around it.
  std::pair<uint32_t, uint32_t> rangeOf(uint32_t stage) const {
    for (const ExpertGroup& group : experts_.groups())
      if (group.reason.empty() && group.first <= stage && stage <= group.last)
        return {group.first, group.last};
    return {stage, stage};
  }

  void describe(const GpuStage& stage, artifact::GpuStepT& step) const {
    const auto [first, last] = rangeOf(stage.first);
    step.first_stage = first;
    step.stages = last - first + 1;
    step.together = together_[stage.first];
    const auto listed = [](const std::vector<uint32_t>& list, uint32_t slot) {
      return std::ranges::find(list, slot) != list.end();
    };
    std::vector<uint32_t> made;
    for (uint32_t s = first; s <= last; ++s) {
      for (const uint32_t slot : stages_[s].reads)
        if (!listed(made, slot) && !listed(step.reads, slot))
          step.reads.push_back(slot);
      for (const uint32_t slot : stages_[s].writes)
        if (!listed(made, slot))
          made.push_back(slot);
    }
    for (const uint32_t slot : made)
      if (first == last || uses_[slot].last > last)
        step.writes.push_back(slot);
  }

  void makeCalls(Stages& list, bool single) {
    for (size_t s = 0; s < stages_.size(); ++s) {
      if (program_.stages[s]->draft)
        continue;
      GpuStage stage = stages_[s];
      stage.covers = {static_cast<uint32_t>(s)};
      for (size_t c = 0; stage.reason.empty() && c < program_.stages[s]->calls.size(); ++c) {
        const artifact::CallT& row = *program_.stages[s]->calls[c];
        const uint32_t mixture = experts_.of(row.op);
        if (mixture == kAbsent)
          stage.calls.push_back(anyCall(row, &*std::next(stageOps_[s].getBody().front().begin(), c)));
        else if (std::optional<GpuCall> call = experts_.call(row.op, mixture, single))
          stage.calls.push_back(row.gate == kAbsent ? std::move(*call) : underGate(std::move(*call), row.gate));
      }
      if (!stage.reason.empty() || !stage.calls.empty())
        list.push_back(std::move(stage));
    }
  }

  GpuCall anyCall(const artifact::CallT& row, Operation* op) const {
    if (!dependsOnOverlay(row))
      return plainCall(row.op, op);
    // Of a choice: its own call, if there is one, and those of skills.
    SmallVector<Operation*> calls;
    if (isa<kernel::ChooseOp>(op))
      for (Region& region : op->getRegions())
        for (Block& block : region)
          for (Operation& call : block)
            calls.push_back(&call);
    else
      calls.push_back(op);
    std::vector<GpuForm> forms;
    for (auto& [form, when] : formsOf(row)) {
      forms.push_back({plainCall(*form, calls[forms.size()]), when});
    }
    return joinForms(std::move(forms), row.mask.get());
  }

  GpuCall plainCall(const artifact::OpUnion& op, Operation* call) const {
    const GpuOpRow& row = *findGpuOp(op.type);
    GpuCall out;
    if (const artifact::MatmulOpT* matmul = op.AsMatmulOp()) {
      std::vector<const artifact::MatmulPartT*> parts;
      for (const auto& part : matmul->parts)
        parts.push_back(part.get());
      out = productCall(std::move(parts), builder_);
    } else {
      const StageEffects effects = StageEffects::of(call);
      for (Value v : effects.reads)
        out.reads.push_back(numbers_.slot(v));
      for (Value v : effects.writes)
        out.writes.push_back(numbers_.slot(v));
      out.lanes = row.lanes(op);
      out.writesLanes = row.writesLanes;
      out.eightBits = row.eightBits;
      if (const artifact::EmbedOpT* embed = op.AsEmbedOp()) {
        out.normed = embed->out;
        out.lowerWithNorm = [embed](GpuBuilder& builder, const artifact::NormOpT& norm) {
          return lowerEmbed(*embed, builder, &norm);
        };
      }
      if (const artifact::AttentionOpT* attention = op.AsAttentionOp())
        out.groupValues = program_.kv_layers[attention->layer]->v_dim;
      out.lower = [&row, &op](GpuBuilder& builder) { return row.lower(op, builder); };
    }
    out.op = &op;
    return out;
  }

  void findOrders() {
    for (const GpuStage& stage : many_) {
      if (!stage.reason.empty())
        for (const auto* slots : {&stage.reads, &stage.writes})
          for (const uint32_t slot : *slots)
            uses_[slot].natural = true;
      for (const GpuCall& call : stage.calls) {
        for (const uint32_t slot : call.reads)
          (std::ranges::find(call.lanes, slot) != call.lanes.end() ? uses_[slot].lanes : uses_[slot].natural) = true;
        for (const uint32_t slot : call.writes)
          uses_[slot].natural = uses_[slot].natural || !call.writesLanes;
      }
    }
    uses_[program_.logits].natural = true;
  }

  void noteUses(const Stages& list) {
    const auto note = [&](const GpuStage& stage, const std::vector<uint32_t>& slots, bool gpu) {
      for (const uint32_t slot : slots) {
        uses_[slot].first = std::min(uses_[slot].first, stage.first);
        uses_[slot].last = std::max(uses_[slot].last, stage.last);
        uses_[slot].gpu = uses_[slot].gpu || gpu;
      }
    };
    for (const GpuStage& stage : list) {
      if (!stage.reason.empty()) {
        note(stage, stage.reads, false);
        note(stage, stage.writes, false);
      }
      for (const GpuCall& call : stage.calls) {
        note(stage, call.reads, true);
        note(stage, call.writes, true);
      }
    }
    // The choice of an id, and the host, take logits from the device, whoever made them.
    uses_[program_.logits].gpu = true;
    uses_[program_.logits].last = static_cast<uint32_t>(stages_.size());
  }

  /// First fit over the stages in which a slot lives.
  Status placeSlots() {
    struct Live {
      uint32_t slot, last;
      uint64_t start, size;
    };
    llvm::DenseMap<uint32_t, uint64_t> strides;
    for (const auto& [slot, stride] : experts_.strides(gpu_->max_batch, builder_))
      strides[slot] = stride;
    std::vector<uint32_t> order;
    for (uint32_t slot = 0; slot < uses_.size(); ++slot) {
      gpu_->buffers.push_back(std::make_unique<artifact::GpuBufferT>());
      if (uses_[slot].gpu)
        order.push_back(slot);
    }
    std::ranges::sort(order, {}, [&](uint32_t slot) { return std::pair(uses_[slot].first, slot); });
    std::vector<Live> live;
    for (const uint32_t slot : order) {
      artifact::GpuBufferT& buffer = *gpu_->buffers[slot];
      const artifact::BufferT& row = *program_.buffers[slot];
      buffer.lanes = uses_[slot].lanes && !uses_[slot].natural;
      buffer.eight_bits = builder_.eightBits(slot);
      buffer.stride = buffer.lanes ? laneRow(row.elements) * row.records : ceilDiv(row.elements * row.records, 4) * 4;
      if (const auto own = strides.find(slot); own != strides.end())
        buffer.stride = own->second;
      std::erase_if(live, [&](const Live& l) { return l.last < uses_[slot].first; });
      std::ranges::sort(live, {}, &Live::start);
      const uint64_t size = ceilDiv(buffer.stride * gpu_->max_batch, 4) * 4;
      uint64_t start = formats::kCounterWords;
      for (const Live& l : live) {
        if (start + size <= l.start)
          break;
        start = std::max(start, l.start + l.size);
      }
      buffer.start = start;
      live.push_back({slot, uses_[slot].last, start, size});
      gpu_->arena_floats = std::max(gpu_->arena_floats, start + size);
    }
    return gpu_->arena_floats <= kMaxFloats
               ? Status()
               : unsupported("the GPU's arena exceeds 2^32 floats; use a smaller --max-batch");
  }

  /// Whether all who read `slot` are products that have a form for 8 bits.
  bool readInEightBits(uint32_t slot) const {
    bool read = false;
    for (const GpuStage& stage : many_)
      for (const GpuCall& call : stage.calls) {
        if (call.takesWhole(slot))
          return false;
        for (const GpuCall::Product& product : call.products) {
          if (product.input != slot)
            continue;
          read = true;
          if (codecTemplate("matmul_i8", builder_.weight(product.weight)).empty() || experts_.decides(product.out))
            return false;
        }
      }
    return read && uses_[slot].lanes && !uses_[slot].natural;
  }

  /// Values in lane order that only products with an 8-bit form read are made in 8 bits. False when there are none.
  bool chooseEightBits() {
    std::vector<bool> fits(uses_.size());
    for (uint32_t slot = 0; slot < uses_.size(); ++slot)
      fits[slot] = readInEightBits(slot);
    for (const Stages* list : {&many_, &single_})
      for (const GpuStage& stage : *list)
        for (const GpuCall& call : stage.calls)
          for (const uint32_t slot : call.writes) {
            const uint64_t values = call.groupValues ? call.groupValues : program_.buffers[slot]->elements;
            fits[slot] = fits[slot] && (call.eightBits == EightBits::kBehind ||
                                        (call.eightBits == EightBits::kWholeGroups && values % 32 == 0));
          }
    for (uint32_t slot = 0; slot < uses_.size(); ++slot)
      if (fits[slot])
        builder_.setEightBits(slot);
    return std::ranges::find(fits, true) != fits.end();
  }

  Status lowerAll(const Stages& list, Steps& steps) {
    for (const GpuStage& stage : list)
      CORTIQ_RETURN_IF_ERROR(
          (stage.reason.empty() ? onGpu(stage, steps) : onCpu(stage, steps)).with_prefix("stage " + stage.name));
    return {};
  }

  Status onGpu(const GpuStage& stage, Steps& steps) {
    builder_.beginStep(stage.head, stage.name);
    for (const GpuCall& call : stage.calls)
      CORTIQ_RETURN_IF_ERROR(call.lower(builder_));
    const size_t first = steps.size();
    builder_.endStep(steps);
    for (size_t i = first; i < steps.size(); ++i) {
      steps[i]->unit = units_[stage.covers[0]];
      if (!builder_.single())
        describe(stage, *steps[i]); // what the CPU runs should the device refuse a part of it
    }
    return {};
  }

  Status onCpu(const GpuStage& stage, Steps& steps) {
    auto step = std::make_unique<artifact::GpuStepT>();
    step->first_stage = stage.first;
    step->stages = 1;
    step->head = stage.head;
    step->reads = stage.reads;
    step->writes = stage.writes;
    step->together = together_[stage.first];
    step->unit = units_[stage.covers[0]];
    step->name = stage.name;
    step->reason = stage.reason;
    steps.push_back(std::move(step));
    return {};
  }

  Status addPicks() {
    if (!codegen::has_shader_template("argmax"))
      return {};
    builder_.beginStep(true, "choice of the largest logit");
    CORTIQ_RETURN_IF_ERROR(lowerArgmax(builder_, program_.logits));
    builder_.endStep(gpu_->picks);
    builder_.beginStep(true, "largest logits");
    CORTIQ_ASSIGN_OR_RETURN(gpu_->top_groups, lowerTopLogits(builder_, program_.logits, kTopLogits));
    gpu_->top_count = kTopLogits;
    builder_.endStep(gpu_->top);
    builder_.beginStep(false, "end of the step");
    CORTIQ_RETURN_IF_ERROR(lowerFinish(builder_));
    builder_.endStep(gpu_->finish);
    return {};
  }

  ProgramNumbers numbers_;
  artifact::ManifestT& manifest_;
  artifact::ProgramT& program_;
  std::unique_ptr<artifact::GpuProgramT> gpu_;
  GpuBuilder builder_;
  ExpertGroups experts_;
  std::vector<SlotUse> uses_;
  SmallVector<kernel::StageOp> stageOps_;
  Stages stages_;                  ///< of the program
  std::vector<uint32_t> together_; ///< stages of one number change sides together
  std::vector<uint32_t> units_;    ///< of stages
  Stages many_, single_;           ///< what the GPU does with many tokens, and with one
  bool eightBits_, half_;          ///< half_: prompts run on 16-bit matrices
};

} // namespace

Status lowerToGpu(ModuleOp module, GpuWeights& weights, artifact::ProgramT& program) {
  CORTIQ_ASSIGN_OR_RETURN(program.gpu, Lowering(module, weights, program, false).run());
  if (weights.manifest.numerics == artifact::Numerics::Fast) {
    CORTIQ_ASSIGN_OR_RETURN(auto eightBits, Lowering(module, weights, program, true).run());
    if (eightBits)
      program.gpu_profiles.push_back(std::move(eightBits));
  }
  return {};
}

} // namespace cortiq::compiler
