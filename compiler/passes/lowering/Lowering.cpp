#include "compiler/passes/lowering/Lowering.h"

#include "codegen/kernels/kernel_spec.h"
#include "compiler/passes/LowRank.h"
#include "dialects/CMF/IR/OverlayCatalog.h"
#include "formats/layout/layout.h"

using namespace mlir;

namespace cortiq::compiler {

kernel::Form formFor(cmf::WeightOp weight, cmf::Arm arm) {
  auto layout = static_cast<formats::LayoutId>(*weight.getLayout());
  bool fast = arm == cmf::Arm::fast && codegen::fast_arm(weight.getType().getCodec(), layout) == codegen::Arm::kFast;
  return fast ? kernel::Form::q8a : kernel::Form::f32;
}

static cmf::Layout factorLayout(formats::CodecId codec, int64_t cols) {
  return formats::r16_format(formats::codec_info(codec), cols).ok() ? cmf::Layout::r16 : cmf::Layout::verbatim;
}

kernel::Form formForFactor(cmf::WeightOp whole, formats::CodecId codec, cmf::Arm arm) {
  // What says of no rank is refused where it is lowered.
  const int64_t cols = codec == formats::CodecId::kBLRU && knowsItsRank(whole)
                           ? whole.getSourceAttr().getLowRank().getRank()
                           : whole.getType().getCols();
  const auto layout = static_cast<formats::LayoutId>(factorLayout(codec, cols));
  const bool fast =
      arm == cmf::Arm::fast && codegen::fast_arm(formats::codec_info(codec), layout) == codegen::Arm::kFast;
  return fast ? kernel::Form::q8a : kernel::Form::f32;
}

bool hasColumnScales(cmf::WeightOp weight) {
  return weight.getType().getCodec().column_scales;
}

Lowering::Lowering(ModuleOp module, func::FuncOp forward)
    : forward_(forward), tables_(module), builder_(module.getContext()),
      target_(module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr)), section_(cmf::findDraftSection(forward)) {
  // The program comes last in the module; tables go in front of it.
  builder_.setInsertionPointToEnd(module.getBody());
  program_ = builder_.create<kernel::ProgramOp>(forward.getLoc(), builder_.getStringAttr("program"), IntegerAttr());
  builder_.createBlock(&program_.getBody());
  skills_ = static_cast<int64_t>(cmf::overlayCatalog(module).skills.size());
}

LogicalResult Lowering::run() {
  for (Operation& op : forward_.getBody().front()) {
    if (!isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      (section_.draft.contains(&op) ? lastDraftState_ : lastState_) = &op;
    auto attention = dyn_cast<cmf::AttentionOp>(op);
    if (!attention)
      continue;
    FailureOr<AttentionChains> chains = attentionChains(attention);
    if (failed(chains))
      return failure();
    for (HeadChain* chain : {&chains->q, &chains->k, &chains->v})
      for (Operation* absorbed : {chain->norm.getOperation(), chain->rope.getOperation()})
        if (absorbed)
          absorbed_.insert(absorbed);
    chains_[attention] = *chains;
  }
  findGates();
  // A weight that is a mixture is made on the way, in front of the operation that reads it.
  for (Operation& op : llvm::make_early_inc_range(forward_.getBody().front())) {
    if (absorbed_.contains(&op))
      continue;
    if (failed(lowerOne(&op)))
      return failure();
  }
  program_->moveAfter(&program_->getBlock()->back());
  return success();
}

LogicalResult Lowering::lowerOne(Operation* op) {
  const OpLowering* row = findLowering(op);
  if (!row)
    return op->emitOpError() << "has no lowering to the kernel dialect";
  auto lower = [&] {
    lastStage_ = {};
    if (failed(row->lower(op, *this)))
      return failure();
    // The last stage of an operation writes its result. That of experts is cut where they are chosen.
    auto mask = op->getAttrOfType<cmf::MaskAttr>(cmf::kMaskAttr);
    if (mask && mask.getKind() != cmf::MaskKind::experts && lastStage_)
      for (Operation& call : lastStage_.getBody().front())
        call.setAttr(cmf::kMaskAttr, mask);
    return success();
  };
  const SmallVector<Operation*> members = withAbsorbed(op);
  const SmallVector<OverlayCase> cases = casesOf(members);
  if (cases.empty())
    return lower();
  CaseStages base;
  std::vector<CaseStages> stages(cases.size());
  caseStages_ = &base;
  LogicalResult result = inCase(members, std::nullopt, lower);
  inCase_ = true;
  for (size_t i = 0; i < cases.size() && succeeded(result); ++i) {
    caseStages_ = &stages[i];
    caseInputs_.clear();
    result = inCase(members, cases[i], lower);
  }
  inCase_ = false;
  caseStages_ = nullptr;
  return failed(result) ? failure() : mergeCases(op, base, cases, stages);
}

Forms Lowering::formsOf(Value value) {
  Forms forms;
  for (OpOperand& use : value.getUses()) {
    const OpLowering* row = findLowering(use.getOwner());
    if (!row || !row->forms) {
      forms.f32 = true;
      continue;
    }
    // The producer writes whatever some case reads.
    Operation* owner = use.getOwner();
    auto add = [&] {
      row->forms(use, forms);
      return success();
    };
    (void)inCase(owner, std::nullopt, add);
    for (OverlayCase which : casesOf(owner))
      (void)inCase(owner, which, add);
  }
  return forms;
}

kernel::SpecAttr Lowering::specOf(cmf::WeightOp weight, kernel::Form form, bool bias, bool residual) {
  std::string_view codec = weight.getType().getCodec().name;
  return kernel::SpecAttr::get(builder_.getContext(), {codec.data(), codec.size()},
                               static_cast<kernel::Layout>(*weight.getLayout()), weight.getType().getCols(), 0, 0, form,
                               isa(), bias, residual);
}

Value Lowering::alloc(Location loc, kernel::Form form, int64_t elements, int64_t records) {
  // Buffers stand in front of all stages.
  OpBuilder::InsertionGuard guard(builder_);
  if (lastAlloc_)
    builder_.setInsertionPointAfter(lastAlloc_);
  else
    builder_.setInsertionPointToStart(&program_.getBody().front());
  auto type = kernel::BufferType::get(builder_.getContext(), form, elements, records);
  lastAlloc_ = builder_.create<kernel::AllocOp>(loc, type, IntegerAttr(), UnitAttr());
  return lastAlloc_.getBuffer();
}

Buffers& Lowering::allocForms(Value v) {
  if (inCase_)
    return buffers_[v];
  Forms forms = formsOf(v);
  Buffers& b = buffers_[v];
  if (forms.f32)
    b.f32 = allocF32(v);
  if (forms.q8a)
    b.q8a = allocQ8(v);
  if (!b.f32 && !b.q8a)
    b.f32 = allocF32(v); // nobody reads it; the operation still needs somewhere to write
  return b;
}

Value Lowering::inputFor(Operation* op, Value v, cmf::WeightOp weight, kernel::Form form) {
  Buffers& b = buffers_[v];
  if (!hasColumnScales(weight) && form == kernel::Form::f32)
    return b.f32;
  Value& shared = hasColumnScales(weight) ? b.scaled[weight] : b.q8a;
  if (shared)
    return shared;
  // What is made for a case alone is there only while the case is.
  Value& have = inCase_ ? caseInputs_[hasColumnScales(weight) ? weight.getResult() : v] : shared;
  if (have)
    return have;
  have = form == kernel::Form::q8a ? allocQ8(v) : allocF32(v);
  FlatSymbolRefAttr scale = hasColumnScales(weight) ? tables_.matrix(weight) : FlatSymbolRefAttr();
  stage(op, nameOf({weight}) + " input", [&] {
    builder_.create<kernel::QuantizeOp>(op->getLoc(), b.f32, scale, form == kernel::Form::f32 ? have : Value(),
                                        form == kernel::Form::q8a ? have : Value());
  });
  return have;
}

cmf::WeightOp Lowering::factorOf(cmf::WeightOp whole, formats::CodecId codec, int64_t path) {
  cmf::WeightOp& known = factors_[{whole, codec, path}];
  if (!known) {
    OpBuilder builder(whole);
    builder.setInsertionPointAfter(whole);
    known = lowRankFactor(builder, whole, codec, path);
    known.setLayoutAttr(cmf::LayoutAttr::get(builder.getContext(), factorLayout(codec, known.getType().getCols())));
  }
  return known;
}

Value Lowering::factorBuffer(cmf::WeightOp factor, kernel::Form form, int64_t elements) {
  Value& known = factorBuffers_[{factor, form}];
  return known ? known : known = alloc(factor.getLoc(), form, elements);
}

/// The name of what a skill's tensor replaces, or `name`. Stages of a case find those of the model by their names:
/// words of a skill's id must not be taken for parts of them.
static StringRef replacedName(StringRef name) {
  if (!name.starts_with("skill."))
    return name;
  const size_t model = std::min(name.find(".model."), name.find(".lm_head."));
  return model == StringRef::npos ? name : name.substr(model + 1);
}

std::string Lowering::nameOf(ArrayRef<cmf::WeightOp> weights) {
  std::string words;
  layer_.clear();
  for (cmf::WeightOp weight : weights) {
    StringRef name = replacedName(weight.getName());
    if (name.consume_front("model.mtp."))
      layer_ = "draft: ";
    SmallVector<StringRef> parts;
    name.split(parts, '.');
    for (size_t i = 0; i + 1 < parts.size(); ++i)
      if (unsigned n; parts[i] == "layers" && layer_.empty() && !parts[i + 1].getAsInteger(10, n))
        layer_ = "layer " + parts[i + 1].str() + ": ";
    if (parts.size() > 1 && parts.back() == "weight")
      parts.pop_back();
    words += (words.empty() ? "" : "+") + parts.back().str();
  }
  return layer_ + words;
}

void Lowering::stage(Operation* op, StringRef name, llvm::function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(builder_);
  const bool draft = section_.draft.contains(op);
  Operation* last = draft ? lastDraftState_ : lastState_;
  const bool head = last && last->isBeforeInBlock(op);
  auto stageOp = builder_.create<kernel::StageOp>(op->getLoc(), builder_.getStringAttr(name), unitAttr(head),
                                                  unitAttr(head && section_.stream.contains(op)), unitAttr(draft));
  builder_.createBlock(&stageOp.getBody());
  body();
  const auto gate = gates_.find(op);
  for (Operation& call : stageOp.getBody().front()) {
    if (gate != gates_.end())
      call.setAttr(kernel::kGateAttr, i64Attr(gate->second));
    if (isa<kernel::MoeRouteOp>(call))
      if (Attribute mask = op->getAttr(cmf::kMaskAttr))
        call.setAttr(cmf::kMaskAttr, mask);
  }
  lastStage_ = stageOp;
  if (caseStages_)
    caseStages_->push_back(stageOp);
}

double Lowering::pendingFactor(Value v) const {
  auto factor = pendingFactor_.find(v);
  return factor == pendingFactor_.end() ? 1.0 : factor->second;
}

} // namespace cortiq::compiler
