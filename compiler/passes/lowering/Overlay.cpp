// Operations with weights that skills replace, layers that masks skip, and the tap of the residual stream.

#include "compiler/passes/lowering/Lowering.h"

#include "formats/layout/layout.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace cortiq::compiler {

SmallVector<Operation*> Lowering::withAbsorbed(Operation* op) const {
  SmallVector<Operation*> ops{op};
  if (auto attention = dyn_cast<cmf::AttentionOp>(op)) {
    AttentionChains chains = chains_.find(attention)->second;
    for (HeadChain* chain : {&chains.q, &chains.k, &chains.v})
      for (Operation* absorbed : {chain->norm.getOperation(), chain->rope.getOperation()})
        if (absorbed && !llvm::is_contained(ops, absorbed))
          ops.push_back(absorbed);
  }
  return ops;
}

SmallVector<OverlayCase> Lowering::casesOf(ArrayRef<Operation*> ops) const {
  SmallVector<OverlayCase> cases;
  for (Operation* op : ops)
    for (Value operand : op->getOperands())
      if (auto overlay = operand.getDefiningOp<cmf::OverlayOp>())
        for (int64_t skill : overlay.getSkills())
          if (!llvm::is_contained(cases, skill))
            cases.push_back(skill);
  llvm::sort(cases);
  if (!cases.empty() && skills_ > 1)
    cases.push_back(kBlendCase);
  return cases;
}

LogicalResult Lowering::inCase(ArrayRef<Operation*> ops, std::optional<OverlayCase> which,
                               llvm::function_ref<LogicalResult()> body) {
  SmallVector<std::pair<OpOperand*, Value>> changed;
  for (Operation* op : ops)
    for (OpOperand& operand : op->getOpOperands())
      if (auto overlay = operand.get().getDefiningOp<cmf::OverlayOp>()) {
        changed.push_back({&operand, operand.get()});
        operand.set(which ? chosenWeight(overlay, *which) : overlay.getBase());
      }
  const LogicalResult result = body();
  for (auto [operand, value] : changed)
    operand->set(value);
  return result;
}

Value Lowering::chosenWeight(cmf::OverlayOp overlay, OverlayCase which) {
  if (which == kBlendCase)
    return blendWeight(overlay);
  Value alternative = overlay.getAlternativeOf(which);
  return alternative ? alternative : overlay.getBase();
}

Value Lowering::blendWeight(cmf::OverlayOp overlay) {
  if (Value known = blends_.lookup(overlay))
    return known;
  auto base = weightOf(overlay.getBase());
  MLIRContext* context = builder_.getContext();
  const auto type = cmf::WeightType::get(context, base.getType().getShape(), formats::CodecId::kF32);
  OpBuilder builder(overlay);
  auto weight = builder.create<cmf::WeightOp>(overlay.getLoc(), type, "blend." + base.getName().str());
  const bool r16 = type.isMatrix() && formats::r16_format(type.getCodec(), type.getCols()).ok();
  weight.setLayoutAttr(cmf::LayoutAttr::get(context, r16 ? cmf::Layout::r16 : cmf::Layout::verbatim));
  SmallVector<std::pair<int64_t, cmf::WeightOp>> parts{{kBlendCase, base}};
  for (auto [skill, alternative] : llvm::zip_equal(overlay.getSkills(), overlay.getAlternatives()))
    parts.push_back({skill, weightOf(alternative)});
  tables_.setBlend(weight, parts);
  return blends_[overlay] = weight.getResult();
}

namespace {

// Stages of the same name: the model's own, and those of cases. Either may be missing.
struct Slot {
  std::string name;
  kernel::StageOp base;
  SmallVector<kernel::StageOp> byCase;
};

std::vector<Slot> align(const std::vector<kernel::StageOp>& base, ArrayRef<std::vector<kernel::StageOp>> stages) {
  std::vector<Slot> slots;
  for (kernel::StageOp stage : base)
    slots.push_back({stage.getName().str(), stage, SmallVector<kernel::StageOp>(stages.size())});
  for (size_t c = 0; c < stages.size(); ++c) {
    size_t next = 0; // what a case does keeps its order
    for (kernel::StageOp stage : stages[c]) {
      auto slot = std::find_if(slots.begin() + next, slots.end(),
                               [&](const Slot& slot) { return StringRef(slot.name) == stage.getName(); });
      if (slot == slots.end())
        slot = slots.insert(slots.begin() + next,
                            {stage.getName().str(), {}, SmallVector<kernel::StageOp>(stages.size())});
      slot->byCase[c] = stage;
      next = slot - slots.begin() + 1;
    }
  }
  return slots;
}

Operation* choose(Location loc, Operation* base, ArrayRef<int64_t> cases, ArrayRef<Operation*> calls) {
  OperationState state(loc, kernel::ChooseOp::getOperationName());
  state.addAttribute("cases", DenseI64ArrayAttr::get(loc.getContext(), cases));
  for (size_t i = 0; i <= calls.size(); ++i)
    state.addRegion();
  Operation* result = Operation::create(state);
  auto fill = [](Region& region, Operation* call) {
    if (call->getBlock())
      call->remove();
    region.emplaceBlock().push_back(call);
  };
  if (base)
    fill(result->getRegion(0), base);
  for (auto [i, call] : llvm::enumerate(calls))
    fill(result->getRegion(i + 1), call);
  return result;
}

} // namespace

LogicalResult Lowering::mergeCases(Operation* op, const CaseStages& base, ArrayRef<OverlayCase> cases,
                                   ArrayRef<CaseStages> stages) {
  std::vector<Slot> slots = align(base, stages);
  Operation* before = nullptr; // where the next slot's stage goes; slots are gone through from the last
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    SmallVector<int64_t> kept;
    SmallVector<kernel::StageOp> alternatives;
    for (auto [which, stage] : llvm::zip_equal(cases, slot->byCase)) {
      if (!stage)
        continue;
      if (slot->base && OperationEquivalence::isRegionEquivalentTo(&stage.getBody(), &slot->base.getBody(),
                                                                   OperationEquivalence::IgnoreLocations)) {
        stage.erase();
        continue;
      }
      kept.push_back(which);
      alternatives.push_back(stage);
    }
    if (alternatives.empty()) {
      before = slot->base;
      continue;
    }
    OpBuilder::InsertionGuard guard(builder_);
    kernel::StageOp target = slot->base;
    if (!target) {
      builder_.setInsertionPointAfter(alternatives.back());
      target = cast<kernel::StageOp>(builder_.cloneWithoutRegions(*alternatives.front()));
      target.getBody().emplaceBlock();
      if (before)
        target->moveBefore(before);
    }
    // A stage's calls become choices one by one; a call that some case lacks is not in its way.
    Block& body = target.getBody().front();
    SmallVector<Operation*> own;
    for (Operation& call : body)
      own.push_back(&call);
    size_t most = own.size();
    for (kernel::StageOp stage : alternatives)
      most = std::max<size_t>(most, llvm::range_size(stage.getBody().front()));
    for (size_t i = 0; i < most; ++i) {
      SmallVector<int64_t> with;
      SmallVector<Operation*> calls;
      for (auto [which, stage] : llvm::zip_equal(kept, alternatives))
        if (Block& block = stage.getBody().front(); !block.empty()) {
          with.push_back(which);
          calls.push_back(&block.front());
          block.front().remove();
        }
      if (!calls.empty())
        body.push_back(choose(op->getLoc(), i < own.size() ? own[i] : nullptr, with, calls));
    }
    for (kernel::StageOp stage : alternatives)
      stage.erase();
    before = target;
  }
  return success();
}

void Lowering::findGates() {
  for (auto gate : forward_.getBody().front().getOps<cmf::LayerGateOp>()) {
    Operation* first = gate.getBefore().getDefiningOp();
    for (Operation* op = first ? first->getNextNode() : nullptr; op && op != gate; op = op->getNextNode())
      gates_[op] = gate.getLayer();
  }
}

LogicalResult lowerLayerGate(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::LayerGateOp>(operation);
  Value before = lowering.f32Of(op.getBefore()), after = lowering.f32Of(op.getAfter());
  Value out = lowering.newF32(op.getResult());
  lowering.stage(op, lowering.inLayer("gate of the layer"), [&] {
    lowering.builder().create<kernel::LayerGateOp>(op.getLoc(), before, after, out, lowering.i64Attr(op.getLayer()));
  });
  return success();
}

LogicalResult lowerPlace(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::PlaceOp>(operation);
  Value in = lowering.f32Of(op.getX());
  Buffers& b = lowering.allocForms(op.getResult());
  lowering.stage(op, lowering.inLayer("place"),
                 [&] { lowering.builder().create<kernel::PlaceOp>(op.getLoc(), in, b.f32, b.q8a, op.getFromAttr()); });
  return success();
}

LogicalResult lowerTap(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::TapOp>(operation);
  lowering.stage(op, lowering.inLayer("tap"), [&] {
    lowering.builder().create<kernel::TapOp>(op.getLoc(), lowering.f32Of(op.getX()), lowering.i64Attr(op.getLayer()));
  });
  return success();
}

} // namespace cortiq::compiler
