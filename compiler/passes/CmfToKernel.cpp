// The lowering walks @forward once. Every activation of the graph becomes up to two buffers, one a form that somebody
// reads (`Forms`), and each operation becomes one stage.

#include "codegen/kernels/kernel_spec.h"
#include "compiler/passes/HeadChain.h"
#include "compiler/passes/KernelTables.h"
#include "compiler/passes/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_CMFTOKERNEL
#include "compiler/passes/Passes.h.inc"

namespace {

/// The form in which kernels read the activations for a weight of `type`.
kernel::Form formFor(cmf::WeightOp weight, cmf::Arm arm) {
  auto layout = static_cast<formats::LayoutId>(*weight.getLayout());
  bool fast = arm == cmf::Arm::fast && codegen::fast_arm(weight.getType().getCodec(), layout) == codegen::Arm::kFast;
  return fast ? kernel::Form::q8a : kernel::Form::f32;
}

bool hasColumnScales(cmf::WeightOp weight) {
  return weight.getType().getCodec().id == formats::CodecId::kQ82F;
}

cmf::WeightOp weightOf(Value v) {
  return v.getDefiningOp<cmf::WeightOp>();
}

class Lowering {
public:
  Lowering(ModuleOp module, func::FuncOp forward)
      : forward_(forward), tables_(module), builder_(module.getContext()),
        target_(module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr)) {
    // The program comes last in the module; tables go in front of it.
    builder_.setInsertionPointToEnd(module.getBody());
    program_ = builder_.create<kernel::ProgramOp>(forward.getLoc(), builder_.getStringAttr("program"), IntegerAttr());
    builder_.createBlock(&program_.getBody());
  }

  LogicalResult run() {
    for (cmf::AttentionOp attention : forward_.getOps<cmf::AttentionOp>()) {
      FailureOr<AttentionChains> chains = attentionChains(attention);
      if (failed(chains))
        return failure();
      for (HeadChain* chain : {&chains->q, &chains->k, &chains->v})
        for (Operation* absorbed : {chain->norm.getOperation(), chain->rope.getOperation()})
          if (absorbed)
            absorbed_.insert(absorbed);
      chains_[attention] = *chains;
      lastAttention_ = attention;
    }
    for (Operation& op : forward_.getBody().front())
      if (!absorbed_.contains(&op) && failed(lower(&op)))
        return failure();
    program_->moveAfter(&program_->getBlock()->back());
    return success();
  }

private:
  struct Buffers {
    Value f32, q8a;
    llvm::DenseMap<Operation*, Value> scaled; ///< multiplied by the column scales of a weight
  };
  struct Forms {
    bool f32 = false, q8a = false;
  };

  // The forms in which the users of `value` read it.
  Forms formsOf(Value value) {
    Forms forms;
    for (OpOperand& use : value.getUses()) {
      auto matmul = dyn_cast<cmf::FusedMatmulOp>(use.getOwner());
      if (!matmul || use.getOperandNumber() != 0) {
        forms.f32 = true;
        continue;
      }
      for (Value w : matmul.getWeights()) {
        bool q8a = formFor(weightOf(w), *matmul.getArm()) == kernel::Form::q8a && !hasColumnScales(weightOf(w));
        (q8a ? forms.q8a : forms.f32) = true;
      }
    }
    return forms;
  }

  Value alloc(Location loc, kernel::Form form, int64_t elements) {
    // Buffers stand in front of all stages.
    OpBuilder::InsertionGuard guard(builder_);
    if (lastAlloc_)
      builder_.setInsertionPointAfter(lastAlloc_);
    else
      builder_.setInsertionPointToStart(&program_.getBody().front());
    auto type = kernel::BufferType::get(builder_.getContext(), form, elements);
    lastAlloc_ = builder_.create<kernel::AllocOp>(loc, type, IntegerAttr(), UnitAttr());
    return lastAlloc_.getBuffer();
  }
  static int64_t width(Value v) { return cast<RankedTensorType>(v.getType()).getDimSize(1); }
  Value allocF32(Value v) { return alloc(v.getLoc(), kernel::Form::f32, width(v)); }
  Value allocQ8(Value v) { return alloc(v.getLoc(), kernel::Form::q8a, width(v)); }

  // "layer 3: q_proj+k_proj+v_proj" from "model.layers.3.self_attn.q_proj.weight" and its siblings. The layer is also
  // the one of the operations without weights that follow.
  std::string nameOf(ArrayRef<cmf::WeightOp> weights) {
    std::string words;
    layer_.clear();
    for (cmf::WeightOp weight : weights) {
      SmallVector<StringRef> parts;
      weight.getName().split(parts, '.');
      for (size_t i = 0; i + 1 < parts.size(); ++i)
        if (unsigned n; parts[i] == "layers" && !parts[i + 1].getAsInteger(10, n))
          layer_ = "layer " + parts[i + 1].str() + ": ";
      if (parts.size() > 1 && parts.back() == "weight")
        parts.pop_back();
      words += (words.empty() ? "" : "+") + parts.back().str();
    }
    return layer_ + words;
  }

  // Runs `body` with the builder inside a new stage.
  void stage(Operation* op, StringRef name, llvm::function_ref<void()> body) {
    OpBuilder::InsertionGuard guard(builder_);
    bool head = lastAttention_ && lastAttention_->isBeforeInBlock(op);
    auto stageOp = builder_.create<kernel::StageOp>(op->getLoc(), builder_.getStringAttr(name),
                                                    head ? builder_.getUnitAttr() : UnitAttr());
    builder_.createBlock(&stageOp.getBody());
    body();
  }

  FloatAttr f32(double value) { return builder_.getF32FloatAttr(static_cast<float>(value)); }

  // The buffers of a result that its producer writes in every form that is read.
  Buffers& allocForms(Value v) {
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

  // The q8a or scaled buffer of `v` for `weight`, quantized now if its producer could not.
  Value inputFor(cmf::FusedMatmulOp op, Value v, cmf::WeightOp weight, kernel::Form form) {
    Buffers& b = buffers_[v];
    if (!hasColumnScales(weight) && form == kernel::Form::f32)
      return b.f32;
    Value& have = hasColumnScales(weight) ? b.scaled[weight] : b.q8a;
    if (have)
      return have;
    have = form == kernel::Form::q8a ? allocQ8(v) : allocF32(v);
    FlatSymbolRefAttr scale = hasColumnScales(weight) ? tables_.matrix(weight) : FlatSymbolRefAttr();
    stage(op, nameOf({weight}) + " input", [&] {
      builder_.create<kernel::QuantizeOp>(op.getLoc(), b.f32, scale, form == kernel::Form::f32 ? have : Value(),
                                          form == kernel::Form::q8a ? have : Value());
    });
    return have;
  }

  LogicalResult lower(Operation* op) {
    return llvm::TypeSwitch<Operation*, LogicalResult>(op)
        .Case<cmf::EmbedOp, cmf::RmsNormOp, cmf::AddRmsNormOp, cmf::FusedMatmulOp, cmf::AttentionOp, cmf::GluOp,
              cmf::AddOp, cmf::ScaleOp, cmf::SoftcapOp, func::ReturnOp>([&](auto typed) { return lowerOp(typed); })
        .Case([](cmf::WeightOp) { return success(); })
        .Case<cmf::DequantOp, cmf::MatmulOp, cmf::BiasAddOp>([](Operation* o) {
          return o->emitOpError() << "must become a cmf.fused_matmul first: run cmf-fuse-dequant-matmul";
        })
        .Case([](cmf::RopeOp rope) {
          return rope.emitOpError() << "stands outside of the queries and keys of an attention";
        })
        .Default([](Operation* o) { return o->emitOpError() << "has no lowering to the kernel dialect"; });
  }

  LogicalResult lowerOp(cmf::EmbedOp op) {
    Value out = buffers_[op.getResult()].f32 = allocF32(op.getResult());
    cmf::WeightOp weight = weightOf(op.getWeight());
    stage(op, nameOf({weight}), [&] {
      builder_.create<kernel::EmbedOp>(op.getLoc(), tables_.matrix(weight), out, f32(op.getScale().convertToDouble()));
    });
    return success();
  }

  LogicalResult lowerOp(cmf::RmsNormOp op) {
    if (op.getGroup() && int64_t(*op.getGroup()) != width(op.getX()))
      return op.emitOpError() << "over groups stands outside of the heads of an attention";
    Value in = buffers_[op.getX()].f32;
    Buffers& b = allocForms(op.getResult());
    FlatSymbolRefAttr weight;
    std::string name = layer_ + "norm";
    if (op.getWeight()) {
      weight = tables_.vector(weightOf(op.getWeight()), op.getUnitOffset() ? 1.0f : 0.0f);
      name = nameOf({weightOf(op.getWeight())});
    }
    stage(op, name, [&] {
      builder_.create<kernel::NormOp>(op.getLoc(), in, Value(), weight, Value(), b.f32, b.q8a,
                                      f32(op.getEps().convertToDouble()), f32(1.0));
    });
    return success();
  }

  LogicalResult lowerOp(cmf::AddRmsNormOp op) {
    Value a = buffers_[op.getA()].f32, add = buffers_[op.getB()].f32;
    Value sum = op.getSum().use_empty() ? Value() : allocF32(op.getSum());
    buffers_[op.getSum()].f32 = sum;
    Buffers& b = allocForms(op.getNormed());
    cmf::WeightOp weight = weightOf(op.getWeight());
    stage(op, nameOf({weight}), [&] {
      builder_.create<kernel::NormOp>(op.getLoc(), a, add, tables_.vector(weight, op.getUnitOffset() ? 1.0f : 0.0f),
                                      sum, b.f32, b.q8a, f32(op.getEps().convertToDouble()), f32(1.0));
    });
    return success();
  }

  LogicalResult lowerOp(cmf::FusedMatmulOp op) {
    if (!op.getArm())
      return op.emitOpError() << "has no arm: run cmf-specialise first";
    struct Part {
      cmf::WeightOp weight;
      kernel::SpecAttr spec;
      Value input, out;
    };
    SmallVector<Part> parts;
    SmallVector<cmf::WeightOp> weights;
    for (auto [i, w] : llvm::enumerate(op.getWeights())) {
      cmf::WeightOp weight = weightOf(w);
      kernel::Form form = formFor(weight, *op.getArm());
      std::string_view codec = weight.getType().getCodec().name;
      auto spec =
          kernel::SpecAttr::get(builder_.getContext(), {codec.data(), codec.size()},
                                static_cast<kernel::Layout>(*weight.getLayout()), weight.getType().getCols(), 0, 0,
                                form, target_.getName().getValue(), bool(op.getBiasOf(i)), bool(op.getResidual()));
      parts.push_back({weight, spec, inputFor(op, op.getX(), weight, form), allocF32(op.getResult(i))});
      buffers_[op.getResult(i)].f32 = parts.back().out;
      weights.push_back(weight);
    }
    Value residual = op.getResidual() ? buffers_[op.getResidual()].f32 : Value();
    stage(op, nameOf(weights), [&] {
      auto matmul = builder_.create<kernel::MatmulOp>(op.getLoc());
      builder_.createBlock(&matmul.getBody());
      for (auto [i, part] : llvm::enumerate(parts)) {
        Value bias = op.getBiasOf(i);
        builder_.create<kernel::CallOp>(op.getLoc(), tables_.matrix(part.weight), part.input,
                                        bias ? tables_.vector(weightOf(bias)) : FlatSymbolRefAttr(), residual, part.out,
                                        part.spec, ArrayAttr(), ArrayAttr());
      }
    });
    return success();
  }

  LogicalResult lowerOp(cmf::AttentionOp op) {
    AttentionChains& c = chains_.find(op)->second;
    Value q = buffers_[c.q.root].f32, k = buffers_[c.k.root].f32, v = buffers_[c.v.root].f32;
    auto norm = [&](HeadChain& chain) {
      return chain.norm ? tables_.vector(weightOf(chain.norm.getWeight()), chain.norm.getUnitOffset() ? 1.0f : 0.0f)
                        : FlatSymbolRefAttr();
    };
    double eps = 0.0;
    for (HeadChain* chain : {&c.q, &c.k, &c.v})
      if (chain->norm)
        eps = chain->norm.getEps().convertToDouble();
    auto unit = [&](bool set) { return set ? builder_.getUnitAttr() : UnitAttr(); };
    auto i64 = [&](int64_t n) { return builder_.getI64IntegerAttr(n); };
    FlatSymbolRefAttr cache = tables_.cache(op);
    stage(op, layer_ + "rope and cache", [&] {
      builder_.create<kernel::AttentionPrepOp>(op.getLoc(), q, k, v, cache, norm(c.q), norm(c.k),
                                               c.q.rope ? tables_.rope(c.q.rope.getRopeAttr()) : FlatSymbolRefAttr(),
                                               i64(op.getHeads()), i64(op.getHeadDim()), f32(eps),
                                               unit(c.q.normLast || c.k.normLast), unit(bool(c.v.norm)));
    });
    Buffers& b = allocForms(op.getResult());
    FlatSymbolRefAttr sinks = op.getSinks() ? tables_.vector(weightOf(op.getSinks())) : FlatSymbolRefAttr();
    stage(op, layer_ + "attention", [&] {
      builder_.create<kernel::AttentionOp>(op.getLoc(), q, cache, sinks, b.f32, b.q8a, i64(op.getHeads()),
                                           i64(op.getHeadDim()), f32(op.getScale().convertToDouble()),
                                           f32(op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0.0));
    });
    return success();
  }

  LogicalResult lowerOp(cmf::GluOp op) {
    Value gate = buffers_[op.getGate()].f32, up = buffers_[op.getUp()].f32;
    Buffers& b = allocForms(op.getResult());
    auto activation =
        kernel::ActivationAttr::get(builder_.getContext(), static_cast<kernel::Activation>(op.getActivation()));
    stage(op, layer_ + "gate",
          [&] { builder_.create<kernel::GluOp>(op.getLoc(), activation, gate, up, b.f32, b.q8a); });
    return success();
  }

  LogicalResult lowerOp(cmf::AddOp op) {
    Value a = buffers_[op.getA()].f32, b = buffers_[op.getB()].f32;
    Value out = buffers_[op.getResult()].f32 = allocF32(op.getResult());
    stage(op, layer_ + "add", [&] { builder_.create<kernel::AddOp>(op.getLoc(), a, b, out, f32(1.0)); });
    return success();
  }

  // kernel.logits works in place, so it takes over the buffer of an input that nobody else reads.
  LogicalResult inPlace(Operation* op, double multiplier, double cap) {
    Value x = op->getOperand(0);
    if (!x.hasOneUse())
      return op->emitOpError() << "works in place, but its input has other users";
    Value buffer = buffers_[x].f32;
    buffers_[op->getResult(0)].f32 = buffer;
    stage(op, layer_ + "scale",
          [&] { builder_.create<kernel::LogitsOp>(op->getLoc(), buffer, f32(multiplier), f32(cap)); });
    return success();
  }

  LogicalResult lowerOp(cmf::ScaleOp op) {
    // cap * tanh(factor * x / cap) is one operation.
    if (op->hasOneUse() && isa<cmf::SoftcapOp>(*op->user_begin()) && op.getX().hasOneUse()) {
      buffers_[op.getResult()].f32 = buffers_[op.getX()].f32;
      pendingFactor_[op.getResult()] = op.getFactor().convertToDouble();
      return success();
    }
    return inPlace(op, op.getFactor().convertToDouble(), 0.0);
  }

  LogicalResult lowerOp(cmf::SoftcapOp op) {
    auto factor = pendingFactor_.find(op.getX());
    return inPlace(op, factor == pendingFactor_.end() ? 1.0 : factor->second, op.getCap().convertToDouble());
  }

  LogicalResult lowerOp(func::ReturnOp op) {
    if (op.getNumOperands() != 1 || !buffers_.contains(op.getOperand(0)))
      return op.emitOpError() << "must return logits that the function computes";
    builder_.create<kernel::ReturnOp>(op.getLoc(), buffers_[op.getOperand(0)].f32);
    return success();
  }

  func::FuncOp forward_;
  KernelTables tables_;
  OpBuilder builder_;
  cmf::TargetAttr target_;
  kernel::ProgramOp program_;
  std::map<Value, Buffers, decltype([](Value a, Value b) { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); })>
      buffers_;
  llvm::DenseMap<Operation*, AttentionChains> chains_;
  llvm::DenseMap<Value, double> pendingFactor_;
  llvm::DenseSet<Operation*> absorbed_;
  cmf::AttentionOp lastAttention_;
  kernel::AllocOp lastAlloc_;
  std::string layer_; // "layer 3: ", of the latest weight
};

class CmfToKernel : public impl::CmfToKernelBase<CmfToKernel> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>(cmf::kForwardName);
    if (!forward || !forward.getBody().hasOneBlock()) {
      module.emitError() << "has no function @" << cmf::kForwardName << " of one block";
      return signalPassFailure();
    }
    if (!module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr)) {
      module.emitError() << "has no '" << cmf::kTargetAttr << "': run cmf-specialise first";
      return signalPassFailure();
    }
    bool undecided = false;
    forward.walk([&](cmf::WeightOp weight) {
      if (!weight.getLayout() && !undecided) {
        weight.emitOpError() << "has no layout: run cmf-choose-layout first";
        undecided = true;
      }
    });
    if (undecided || failed(Lowering(module, forward).run()))
      return signalPassFailure();
    forward.erase();
  }
};

} // namespace
} // namespace cortiq::compiler
