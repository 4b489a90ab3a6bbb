#include "compiler/gpu/LowerToGpu.h"

#include <algorithm>
#include <numeric>

#include "compiler/emit/rows/rows.h"
#include "compiler/gpu/GpuBuilder.h"
#include "compiler/passes/StageEffects.h"

using namespace mlir;

namespace cortiq::compiler {
namespace {

constexpr uint64_t kMaxFloats = UINT32_MAX;

struct SlotUse {
  uint32_t first = kAbsent, last = 0; ///< stages that touch it
  bool gpu = false;                   ///< the GPU touches it
  bool natural = false;               ///< somebody needs that order
  bool lanes = false;                 ///< somebody reads that one
};

/// What the stage behind joins where a batch is one token.
enum class Fusion { kNone, kNorm, kGlu, kAttention };

struct StagePlan {
  std::vector<uint32_t> reads, writes;
  std::string reason; ///< why the CPU runs it; empty = the GPU does
  Fusion fusion = Fusion::kNone;
  uint32_t together = kAbsent; ///< stages of one number change sides together
};

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
        gpu_(std::make_unique<artifact::GpuProgramT>()), builder_(weights, program, *gpu_),
        uses_(program.buffers.size()), eightBits_(eightBits) {
    kernel::ProgramOp op = *module.getOps<kernel::ProgramOp>().begin();
    for (auto alloc : op.getBody().front().getOps<kernel::AllocOp>())
      numbers_.addSlot(alloc.getBuffer());
    for (auto stage : op.getBody().front().getOps<kernel::StageOp>())
      stages_.push_back(stage);
  }

  /// None when it would be the program that there is without 8 bits.
  StatusOr<std::unique_ptr<artifact::GpuProgramT>> run() {
    gpu_->max_batch = manifest_.max_batch;
    gpu_->cache_half = manifest_.kv_f16;
    choose();
    keepScalesTogether();
    findTogether();
    findOrders();
    fuse();
    if (eightBits_ && !chooseEightBits())
      return std::unique_ptr<artifact::GpuProgramT>();
    CORTIQ_RETURN_IF_ERROR(placeSlots());
    builder_.setSquaresStart(gpu_->arena_floats);
    gpu_->arena_floats += 2 * GpuBuilder::kSquaresFloats;
    builder_.setScratchStart(gpu_->arena_floats);
    for (size_t s = 0; s < plans_.size(); ++s) {
      if (program_.stages[s]->draft)
        continue;
      CORTIQ_RETURN_IF_ERROR((plans_[s].reason.empty() ? onGpu(s, gpu_->steps) : onCpu(s, gpu_->steps))
                                 .with_prefix("stage " + program_.stages[s]->name));
    }
    CORTIQ_RETURN_IF_ERROR(addPicks());
    CORTIQ_RETURN_IF_ERROR(lowerSingle());
    gpu_->arena_floats += builder_.scratchFloats();
    if (gpu_->arena_floats > kMaxFloats || gpu_->vector_floats > kMaxFloats)
      return unsupported("a batch of " + std::to_string(gpu_->max_batch) +
                         " tokens does not fit the GPU's arena; use a smaller --max-batch");
    gpu_->needs = eightBits_ ? formats::kNeedsIntegerDot : 0;
    return std::move(gpu_);
  }

private:
  /// Which stages the GPU runs. A cache is wholly on one side.
  void choose() {
    std::vector<std::string> layers(program_.kv_layers.size());
    for (size_t s = 0; s < stages_.size(); ++s) {
      StagePlan plan;
      StageEffects effects = StageEffects::of(stages_[s]);
      for (Value v : effects.reads)
        plan.reads.push_back(numbers_.slot(v));
      for (Value v : effects.writes)
        plan.writes.push_back(numbers_.slot(v));
      for (const auto& call : program_.stages[s]->calls) {
        if (plan.reason.empty())
          plan.reason = refusal(*call);
      }
      for (const auto& call : program_.stages[s]->calls)
        if (const uint32_t layer = layerOf(call->op); layer != kAbsent && layers[layer].empty())
          layers[layer] = plan.reason;
      plans_.push_back(std::move(plan));
    }
    for (size_t s = 0; s < stages_.size(); ++s)
      for (const auto& call : program_.stages[s]->calls)
        if (const uint32_t layer = layerOf(call->op); layer != kAbsent && plans_[s].reason.empty())
          plans_[s].reason = layers[layer];
  }

  std::string refusal(const artifact::CallT& call) const {
    if (!call.alternatives.empty() || call.idle || call.mask || call.gate != kAbsent)
      return "what it does depends on the skill or task in force";
    const GpuOpRow* row = findGpuOp(call.op.type);
    if (!row)
      return std::string("there is no shader for ") + artifact::EnumNameOp(call.op.type);
    return row->refuse(call.op, builder_);
  }

  void findOrders() {
    for (size_t s = 0; s < plans_.size(); ++s) {
      const StagePlan& plan = plans_[s];
      if (program_.stages[s]->draft)
        continue;
      for (const auto* slots : {&plan.reads, &plan.writes})
        for (const uint32_t slot : *slots) {
          uses_[slot].first = std::min(uses_[slot].first, static_cast<uint32_t>(s));
          uses_[slot].last = static_cast<uint32_t>(s);
          uses_[slot].gpu = uses_[slot].gpu || plan.reason.empty();
        }
      if (!plan.reason.empty()) {
        for (const auto* slots : {&plan.reads, &plan.writes})
          for (const uint32_t slot : *slots)
            uses_[slot].natural = true;
        continue;
      }
      for (size_t c = 0; c < program_.stages[s]->calls.size(); ++c) {
        const artifact::CallT& call = *program_.stages[s]->calls[c];
        const GpuOpRow& row = *findGpuOp(call.op.type);
        Operation* op = &*std::next(stages_[s].getBody().front().begin(), c);
        const StageEffects effects = StageEffects::of(op);
        const std::vector<uint32_t> lanes = row.lanes(call.op);
        for (Value v : effects.reads) {
          const uint32_t slot = numbers_.slot(v);
          (std::ranges::find(lanes, slot) != lanes.end() ? uses_[slot].lanes : uses_[slot].natural) = true;
        }
        for (Value v : effects.writes)
          if (!row.writesLanes)
            uses_[numbers_.slot(v)].natural = true;
      }
    }
    uses_[program_.logits].natural = true;
    uses_[program_.logits].last = static_cast<uint32_t>(plans_.size());
  }

  /// First fit over the stages in which a slot lives.
  Status placeSlots() {
    struct Live {
      uint32_t slot, last;
      uint64_t start, size;
    };
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
      buffer.eight_bits = std::ranges::find(eightBitSlots_, slot) != eightBitSlots_.end();
      buffer.stride = buffer.lanes ? laneRow(row.elements) : ceilDiv(row.elements * row.records, 4) * 4;
      std::erase_if(live, [&](const Live& l) { return l.last < uses_[slot].first; });
      std::ranges::sort(live, {}, &Live::start);
      const uint64_t size = buffer.stride * gpu_->max_batch;
      uint64_t start = 0;
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

  /// The one call of a stage of the GPU; null when there are several, or none of that kind.
  const artifact::OpUnion* only(size_t s) const {
    if (s >= plans_.size() || !plans_[s].reason.empty() || program_.stages[s]->draft ||
        program_.stages[s]->calls.size() != 1)
      return nullptr;
    return &program_.stages[s]->calls[0]->op;
  }

  bool takesNorm(size_t s) const {
    const artifact::OpUnion *op = only(s), *next = only(s + 1);
    if (!op || !next || !op->AsMatmulOp() || !next->AsNormOp() || program_.stages[s]->head)
      return false;
    const auto& parts = op->AsMatmulOp()->parts;
    const artifact::NormOpT& norm = *next->AsNormOp();
    const uint32_t out = norm.out != kAbsent ? norm.out : norm.act_out;
    if (parts.size() != 1 || parts[0]->out != norm.input || parts[0]->out_column != 0 ||
        builder_.weight(parts[0]->weight).rows != builder_.elements(norm.input) ||
        (norm.out != kAbsent && norm.act_out != kAbsent) || norm.add != kAbsent || norm.sum_out != kAbsent ||
        norm.weight == kAbsent || norm.bias != kAbsent || norm.centered || norm.scale != 1)
      return false;
    // Only products know what to do with a row that lacks its factor, and only of the width that the norm had.
    if (!uses_[out].lanes || uses_[out].natural)
      return false;
    for (size_t r = s + 2; r <= uses_[out].last && r < plans_.size(); ++r)
      for (const auto& call : program_.stages[r]->calls)
        if (const artifact::MatmulOpT* reader = call->op.AsMatmulOp())
          for (const auto& part : reader->parts)
            if (part->input == out && builder_.weight(part->weight).cols != builder_.elements(norm.input))
              return false;
    return true;
  }

  bool takesGlu(size_t s) const {
    const artifact::OpUnion *op = only(s), *next = only(s + 1);
    if (!op || !next || !op->AsMatmulOp() || !next->AsGluOp() || op->AsMatmulOp()->parts.size() != 2)
      return false;
    const artifact::MatmulPartT &a = *op->AsMatmulOp()->parts[0], &b = *op->AsMatmulOp()->parts[1];
    const artifact::GluOpT& glu = *next->AsGluOp();
    const artifact::WeightT &wa = builder_.weight(a.weight), &wb = builder_.weight(b.weight);
    const bool both = (a.out == glu.gate && b.out == glu.up) || (a.out == glu.up && b.out == glu.gate);
    return both && a.out != b.out && uses_[a.out].last == s + 1 && uses_[b.out].last == s + 1 && a.input == b.input &&
           a.input_column == b.input_column && a.out_column == 0 && b.out_column == 0 && a.residual == kAbsent &&
           b.residual == kAbsent && (a.bias == kAbsent) == (b.bias == kAbsent) && wa.codec == wb.codec &&
           wa.rows == wb.rows && wa.cols == wb.cols && wa.rows == builder_.elements(glu.up) &&
           (glu.out == kAbsent || glu.act_out == kAbsent);
  }

  bool takesAttention(size_t s) const {
    const artifact::OpUnion *op = only(s), *next = only(s + 1);
    if (!op || !next || !op->AsAttentionPrepOp() || !next->AsAttentionOp())
      return false;
    const artifact::AttentionPrepOpT& prep = *op->AsAttentionPrepOp();
    const artifact::AttentionOpT& attention = *next->AsAttentionOp();
    return prep.layer == attention.layer && prep.q == attention.q && prep.q_column == attention.q_column &&
           prep.heads == attention.heads && uses_[prep.q].last == s + 1;
  }

  /// Plans what is one step where a batch is one token. Results of the second stage are then written while the operands
  /// of the first are read: they may not share memory.
  void fuse() {
    for (size_t s = 0; s + 1 < plans_.size(); ++s) {
      plans_[s].fusion = takesNorm(s)        ? Fusion::kNorm
                         : takesGlu(s)       ? Fusion::kGlu
                         : takesAttention(s) ? Fusion::kAttention
                                             : Fusion::kNone;
      if (plans_[s].fusion == Fusion::kNone)
        continue;
      for (const uint32_t slot : plans_[s + 1].writes)
        uses_[slot].first = std::min(uses_[slot].first, static_cast<uint32_t>(s));
      for (const uint32_t slot : plans_[s].reads)
        uses_[slot].last = std::max(uses_[slot].last, static_cast<uint32_t>(s + 1));
      ++s;
    }
  }

  /// Values in lane order that only products with an 8-bit form read are made in 8 bits. False when there are none.
  bool chooseEightBits() {
    std::vector<bool> fits(uses_.size()), read(uses_.size());
    for (uint32_t slot = 0; slot < uses_.size(); ++slot)
      fits[slot] = uses_[slot].lanes && !uses_[slot].natural;
    for (size_t s = 0; s < plans_.size(); ++s)
      for (size_t c = 0; c < program_.stages[s]->calls.size(); ++c) {
        const artifact::OpUnion& op = program_.stages[s]->calls[c]->op;
        if (const artifact::MatmulOpT* matmul = op.AsMatmulOp())
          for (const auto& part : matmul->parts) {
            read[part->input] = true;
            if (codecTemplate("matmul_i8", builder_.weight(part->weight)).empty())
              fits[part->input] = false;
          }
        for (const uint32_t slot : plans_[s].writes) {
          // Products and attention write whole groups, a norm and an activation alone are quantized behind.
          const bool fused = s > 0 && plans_[s - 1].fusion != Fusion::kNone;
          if (const artifact::AttentionOpT* attention = op.AsAttentionOp())
            fits[slot] = fits[slot] && program_.kv_layers[attention->layer]->v_dim % 32 == 0;
          else if (!op.AsNormOp() && !op.AsGluOp())
            fits[slot] = false;
          else if (fused)
            fits[slot] = fits[slot] && program_.buffers[slot]->elements % 32 == 0;
        }
      }
    bool any = false;
    for (uint32_t slot = 0; slot < uses_.size(); ++slot)
      if (fits[slot] && read[slot]) {
        builder_.setEightBits(slot);
        eightBitSlots_.push_back(slot);
        any = true;
      }
    return any;
  }

  Status lowerSingle() {
    if (std::ranges::none_of(plans_, [](const StagePlan& plan) { return plan.fusion != Fusion::kNone; }))
      return {};
    builder_.setSingle();
    for (size_t s = 0; s < plans_.size(); ++s) {
      if (program_.stages[s]->draft)
        continue;
      const Fusion fusion = plans_[s].fusion;
      if (fusion == Fusion::kNone) {
        CORTIQ_RETURN_IF_ERROR(plans_[s].reason.empty() ? onGpu(s, gpu_->single) : onCpu(s, gpu_->single));
        continue;
      }
      builder_.beginStep(program_.stages[s]->head, program_.stages[s]->name);
      const artifact::OpUnion &op = *only(s), &next = *only(s + 1);
      if (fusion == Fusion::kAttention)
        CORTIQ_RETURN_IF_ERROR(lowerAttentionStep(*op.AsAttentionPrepOp(), *next.AsAttentionOp(), builder_));
      else
        CORTIQ_RETURN_IF_ERROR(lowerMatmul(*op.AsMatmulOp(), builder_, {next.AsNormOp(), next.AsGluOp()}));
      builder_.endStep(gpu_->single);
      ++s;
    }
    return {};
  }

  /// Column scales multiply what a product reads: on the CPU before it is quantized, on the GPU in the product. Both
  /// ends have to be on one side.
  void keepScalesTogether() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t s = 0; s < plans_.size(); ++s)
        for (const auto& call : program_.stages[s]->calls) {
          const artifact::QuantizeOpT* quantize = call->op.AsQuantizeOp();
          if (!quantize || quantize->column_scale == kAbsent)
            continue;
          for (size_t r = 0; r < plans_.size(); ++r) {
            const bool reads = std::ranges::any_of(
                plans_[r].reads, [&](uint32_t slot) { return slot == quantize->out || slot == quantize->act_out; });
            if (!reads || plans_[r].reason.empty() == plans_[s].reason.empty())
              continue;
            StagePlan& gpu = plans_[plans_[r].reason.empty() ? r : s];
            gpu.reason = "its column scales are applied on the CPU";
            changed = true;
          }
        }
    }
  }

  /// What has to be on one side, should a device refuse a part of it: a cache's stages, and column scales with the
  /// products that they are for.
  void findTogether() {
    std::vector<uint32_t> of(plans_.size());
    std::iota(of.begin(), of.end(), 0u);
    auto join = [&](size_t a, size_t b) {
      const uint32_t from = of[a], to = of[b];
      std::ranges::replace(of, from, to);
    };
    llvm::DenseMap<uint32_t, uint32_t> ofLayer;
    for (size_t s = 0; s < plans_.size(); ++s)
      for (const auto& call : program_.stages[s]->calls) {
        if (const uint32_t layer = layerOf(call->op); layer != kAbsent)
          if (const auto [at, first] = ofLayer.try_emplace(layer, s); !first)
            join(s, at->second);
        const artifact::QuantizeOpT* quantize = call->op.AsQuantizeOp();
        if (!quantize || quantize->column_scale == kAbsent)
          continue;
        for (size_t r = 0; r < plans_.size(); ++r)
          if (std::ranges::any_of(plans_[r].reads,
                                  [&](uint32_t slot) { return slot == quantize->out || slot == quantize->act_out; }))
            join(r, s);
      }
    for (size_t s = 0; s < plans_.size(); ++s)
      plans_[s].together = of[s];
  }

  using Steps = std::vector<std::unique_ptr<artifact::GpuStepT>>;

  Status onGpu(size_t s, Steps& steps) {
    const artifact::StageT& stage = *program_.stages[s];
    const size_t first = steps.size();
    builder_.beginStep(stage.head, stage.name);
    for (const auto& call : stage.calls)
      CORTIQ_RETURN_IF_ERROR(findGpuOp(call->op.type)->lower(call->op, builder_));
    builder_.endStep(steps);
    // What the CPU runs should the device refuse a part of it.
    for (size_t i = first; i < steps.size(); ++i)
      describe(s, *steps[i]);
    return {};
  }

  void describe(size_t s, artifact::GpuStepT& step) const {
    step.first_stage = s;
    step.stages = 1;
    step.reads = plans_[s].reads;
    step.writes = plans_[s].writes;
    step.together = plans_[s].together;
  }

  Status onCpu(size_t s, Steps& steps) {
    auto step = std::make_unique<artifact::GpuStepT>();
    describe(s, *step);
    step->head = program_.stages[s]->head;
    step->name = program_.stages[s]->name;
    step->reason = plans_[s].reason;
    steps.push_back(std::move(step));
    return {};
  }

  Status addPicks() {
    if (!codegen::has_shader_template("argmax"))
      return {};
    builder_.beginStep(true, "choice of the largest logit");
    CORTIQ_RETURN_IF_ERROR(lowerArgmax(builder_, program_.logits));
    builder_.endStep(gpu_->picks);
    return {};
  }

  ProgramNumbers numbers_;
  artifact::ManifestT& manifest_;
  artifact::ProgramT& program_;
  std::unique_ptr<artifact::GpuProgramT> gpu_;
  GpuBuilder builder_;
  std::vector<SlotUse> uses_;
  SmallVector<kernel::StageOp> stages_;
  std::vector<StagePlan> plans_;
  bool eightBits_;
  std::vector<uint32_t> eightBitSlots_;
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
