// cmf.fused_moe: router, choice, plan, experts on pairs, combination. The shared expert's products stand beside the
// routed stages that they do not depend on.

#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

/// A product of all tokens with one matrix.
struct Product {
  cmf::WeightOp weight;
  kernel::Form form;
  Value input, bias, out;
};

/// One matrix of every expert.
struct Role {
  OperandRange weights, biases;

  bool any(cmf::Arm arm, kernel::Form form, bool scaled) const {
    return llvm::any_of(
        weights, [&](Value w) { return formFor(weightOf(w), arm) == form && hasColumnScales(weightOf(w)) == scaled; });
  }
};

/// Buffers in the two forms; null where nobody reads one.
struct TwoForms {
  Value f32, q8a;
  Value of(kernel::Form form) const { return form == kernel::Form::q8a ? q8a : f32; }
  bool empty() const { return !f32 && !q8a; }
};

class MoeLowering {
public:
  MoeLowering(cmf::FusedMoeOp op, Lowering& lowering)
      : op_(op), lowering_(lowering), builder_(lowering.builder()), arm_(*op.getArm()), experts_(op.getGates().size()),
        choices_(op.getRouting().getTopK()), hidden_(Lowering::width(op.getX())),
        gates_{op.getGates(), op.getGateBiases()}, ups_{op.getUps(), op.getUpBiases()},
        downs_{op.getDowns(), op.getDownBiases()} {
    for (Value gate : op.getGates())
      widths_.push_back(weightOf(gate).getType().getRows());
  }

  void run() {
    lowerTokenProducts();
    lowerRoute();
    if (!op_.getShared().empty())
      lowerSharedDown();
    const int64_t widest = *llvm::max_element(widths_);
    Value gate = pairs(kernel::Form::f32, widest), up = pairs(kernel::Form::f32, widest);
    lowerGateUp(gate, up);
    const TwoForms gated{downs_.any(arm_, kernel::Form::f32, false) || downs_.any(arm_, kernel::Form::f32, true)
                             ? pairs(kernel::Form::f32, widest)
                             : Value(),
                         downs_.any(arm_, kernel::Form::q8a, false) || downs_.any(arm_, kernel::Form::q8a, true)
                             ? pairs(kernel::Form::q8a, widest)
                             : Value()};
    lowering_.stage(op_, lowering_.inLayer("experts' gate"), [&] {
      builder_.create<kernel::MoeGluOp>(op_.getLoc(), activation(), plan_, gate, up, gated.f32, gated.q8a,
                                        builder_.getDenseI64ArrayAttr(widths_), columnScales(downs_), alpha(), limit());
    });
    Value out = pairs(kernel::Form::f32, hidden_);
    lowering_.stage(op_, lowering_.inLayer("experts' down_proj"), [&] { matmul(downs_, gated, gated, {}, out); });
    Value residual = op_.getResidual() ? lowering_.f32Of(op_.getResidual()) : Value();
    Value result = lowering_.newF32(op_.getResult());
    lowering_.stage(op_, lowering_.inLayer("combine"), [&] {
      builder_.create<kernel::MoeCombineOp>(op_.getLoc(), plan_, weights_, out, sharedOut_, sharedGate_, residual,
                                            result, lowering_.i64Attr(experts_));
    });
  }

private:
  Value pairs(kernel::Form form, int64_t elements) { return lowering_.alloc(op_.getLoc(), form, elements, choices_); }
  Value alloc(kernel::Form form, int64_t elements) { return lowering_.alloc(op_.getLoc(), form, elements); }

  FloatAttr alpha() { return lowering_.f32Attr(op_.getAlpha() ? op_.getAlpha()->convertToDouble() : 0.0); }
  FloatAttr limit() { return lowering_.f32Attr(op_.getLimit() ? op_.getLimit()->convertToDouble() : 0.0); }
  kernel::ActivationAttr activation() {
    return kernel::ActivationAttr::get(op_.getContext(), static_cast<kernel::Activation>(op_.getActivation()));
  }

  void products(StringRef name, ArrayRef<Product> list) {
    lowering_.stage(op_, name, [&] {
      auto matmul = builder_.create<kernel::MatmulOp>(op_.getLoc());
      builder_.createBlock(&matmul.getBody());
      for (const Product& p : list)
        builder_.create<kernel::CallOp>(op_.getLoc(), lowering_.tables().matrix(p.weight), p.input,
                                        p.bias ? lowering_.tables().vector(weightOf(p.bias)) : FlatSymbolRefAttr(),
                                        Value(), p.out, lowering_.specOf(p.weight, p.form, bool(p.bias), false),
                                        ArrayAttr(), ArrayAttr(), lowering_.i64Attr(0), lowering_.i64Attr(0));
    });
  }

  /// A product of `x` with `weight` into a buffer of its own. Router and gate of the shared expert take f32: they
  /// decide, and cost little.
  Product product(Value x, Value weight, Value bias, bool exact) {
    cmf::WeightOp op = weightOf(weight);
    const kernel::Form form = exact ? kernel::Form::f32 : formFor(op, arm_);
    Value input = lowering_.inputFor(op_, x, op, form);
    return {op, form, input, bias, alloc(kernel::Form::f32, op.getType().getRows())};
  }

  void lowerTokenProducts() {
    SmallVector<Product> list{product(op_.getRouterX(), op_.getRouter(), op_.getRouterBias(), /*exact=*/true)};
    SmallVector<cmf::WeightOp> names{weightOf(op_.getRouter())};
    logits_ = list[0].out;
    if (!op_.getShared().empty()) {
      for (unsigned i : {0, 1}) {
        list.push_back(product(op_.getX(), op_.getShared()[i], Value(), /*exact=*/false));
        names.push_back(weightOf(op_.getShared()[i]));
      }
      sharedHalves_[0] = list[1].out;
      sharedHalves_[1] = list[2].out;
      if (op_.getSharedGate()) {
        list.push_back(product(op_.getX(), op_.getSharedGate(), Value(), /*exact=*/true));
        sharedGate_ = list.back().out;
      }
    }
    products(lowering_.nameOf(names), list);
  }

  void lowerRoute() {
    Value ids = alloc(kernel::Form::i32, choices_);
    weights_ = alloc(kernel::Form::f32, choices_);
    plan_ = alloc(kernel::Form::i32, 2 * experts_ + 2 + 2 * choices_);
    cmf::RoutingAttr routing = op_.getRouting();
    auto vector = [&](Value w) { return w ? lowering_.tables().vector(weightOf(w)) : FlatSymbolRefAttr(); };
    auto number = [&](FloatAttr value) { return builder_.getF64FloatAttr(value ? value.getValueAsDouble() : 0.0); };
    lowering_.stage(op_, lowering_.inLayer("route"), [&] {
      builder_.create<kernel::MoeRouteOp>(
          op_.getLoc(), logits_,
          kernel::ScoringAttr::get(op_.getContext(), static_cast<kernel::Scoring>(routing.getScoring())),
          vector(op_.getBias()), vector(op_.getExpertScales()), ids, weights_,
          lowering_.unitAttr(routing.getNormEpsilon() || routing.getNormMinimum()), number(routing.getNormEpsilon()),
          number(routing.getNormMinimum()), builder_.getF64FloatAttr(routing.getFactor()),
          lowering_.i64Attr(routing.getGroups()), lowering_.i64Attr(routing.getGroupsUsed()));
    });
    lowering_.stage(op_, lowering_.inLayer("plan"),
                    [&] { builder_.create<kernel::MoePlanOp>(op_.getLoc(), ids, plan_, lowering_.i64Attr(experts_)); });
  }

  void lowerSharedDown() {
    cmf::WeightOp down = weightOf(op_.getShared()[2]);
    const kernel::Form form = formFor(down, arm_);
    const int64_t width = down.getType().getCols();
    const bool scaled = hasColumnScales(down), direct = form == kernel::Form::q8a && !scaled;
    TwoForms gated{direct ? Value() : alloc(kernel::Form::f32, width),
                   direct ? alloc(kernel::Form::q8a, width) : Value()};
    lowering_.stage(op_, lowering_.inLayer("shared gate"), [&] {
      builder_.create<kernel::GluOp>(op_.getLoc(), activation(), sharedHalves_[0], sharedHalves_[1], gated.f32,
                                     gated.q8a, alpha(), limit());
    });
    Value input = gated.of(form);
    if (scaled) {
      input = alloc(form, width);
      lowering_.stage(op_, lowering_.inLayer("shared down_proj input"), [&] {
        builder_.create<kernel::QuantizeOp>(op_.getLoc(), gated.f32, lowering_.tables().matrix(down),
                                            form == kernel::Form::f32 ? input : Value(),
                                            form == kernel::Form::q8a ? input : Value());
      });
    }
    sharedOut_ = alloc(kernel::Form::f32, hidden_);
    products(lowering_.nameOf({down}), {Product{down, form, input, Value(), sharedOut_}});
  }

  void lowerGateUp(Value gate, Value up) {
    // What a token's experts read of it, and the same in the pairs' order.
    TwoForms token, plain;
    for (Value w : llvm::concat<Value>(SmallVector<Value>(gates_.weights), SmallVector<Value>(ups_.weights)))
      if (kernel::Form form = formFor(weightOf(w), arm_); !hasColumnScales(weightOf(w)) && !token.of(form)) {
        (form == kernel::Form::q8a ? token.q8a : token.f32) = lowering_.inputFor(op_, op_.getX(), weightOf(w), form);
        (form == kernel::Form::q8a ? plain.q8a : plain.f32) = pairs(form, hidden_);
      }
    const TwoForms gateScaled = scaledPairs(gates_), upScaled = scaledPairs(ups_);
    lowering_.stage(op_, lowering_.inLayer("gather"), [&] {
      auto gather = [&](const TwoForms& from, const TwoForms& to, ArrayAttr scales) {
        if (!to.empty())
          builder_.create<kernel::MoeGatherOp>(op_.getLoc(), plan_, from.f32, from.q8a, to.f32, to.q8a,
                                               lowering_.i64Attr(experts_), scales);
      };
      const TwoForms floats{lowering_.f32Of(op_.getX()), Value()};
      gather(token, plain, ArrayAttr());
      gather(floats, gateScaled, columnScales(gates_));
      gather(floats, upScaled, columnScales(ups_));
    });
    lowering_.stage(op_, lowering_.inLayer("experts' gate_proj+up_proj"), [&] {
      matmul(gates_, plain, gateScaled, token, gate);
      matmul(ups_, plain, upScaled, token, up);
    });
  }

  /// Buffers for the inputs of a role's weights with column scales.
  TwoForms scaledPairs(const Role& role) {
    return {role.any(arm_, kernel::Form::f32, true) ? pairs(kernel::Form::f32, hidden_) : Value(),
            role.any(arm_, kernel::Form::q8a, true) ? pairs(kernel::Form::q8a, hidden_) : Value()};
  }

  /// The weights of `role` that have column scales, unit for the others; null when none has.
  ArrayAttr columnScales(const Role& role) {
    if (llvm::none_of(role.weights, [](Value w) { return hasColumnScales(weightOf(w)); }))
      return {};
    SmallVector<Attribute> scales;
    for (Value w : role.weights)
      scales.push_back(hasColumnScales(weightOf(w)) ? Attribute(lowering_.tables().matrix(weightOf(w)))
                                                    : Attribute(builder_.getUnitAttr()));
    return builder_.getArrayAttr(scales);
  }

  void matmul(const Role& role, const TwoForms& plain, const TwoForms& scaled, const TwoForms& token, Value out) {
    auto matmul = builder_.create<kernel::MoeMatmulOp>(op_.getLoc(), plan_);
    OpBuilder::InsertionGuard guard(builder_);
    builder_.createBlock(&matmul.getBody());
    for (auto [e, value] : llvm::enumerate(role.weights)) {
      cmf::WeightOp weight = weightOf(value);
      const kernel::Form form = formFor(weight, arm_);
      const bool hasScales = hasColumnScales(weight);
      Value bias = role.biases.empty() ? Value() : role.biases[e];
      builder_.create<kernel::ExpertOp>(op_.getLoc(), lowering_.tables().matrix(weight),
                                        (hasScales ? scaled : plain).of(form), hasScales ? Value() : token.of(form),
                                        bias ? lowering_.tables().vector(weightOf(bias)) : FlatSymbolRefAttr(), out,
                                        lowering_.specOf(weight, form, bool(bias), false), ArrayAttr(), ArrayAttr());
    }
  }

  cmf::FusedMoeOp op_;
  Lowering& lowering_;
  OpBuilder& builder_;
  cmf::Arm arm_;
  int64_t experts_, choices_, hidden_;
  Role gates_, ups_, downs_;
  SmallVector<int64_t> widths_;
  Value logits_, weights_, plan_, sharedHalves_[2], sharedGate_, sharedOut_;
};

} // namespace

void fusedMoeForms(OpOperand& use, Forms& forms) {
  auto moe = cast<cmf::FusedMoeOp>(use.getOwner());
  // The experts' input comes first; router and residual are read as f32.
  if (use.getOperandNumber() != 0) {
    forms.f32 = true;
    return;
  }
  auto read = [&](Value w) {
    const bool q8a = formFor(weightOf(w), *moe.getArm()) == kernel::Form::q8a && !hasColumnScales(weightOf(w));
    (q8a ? forms.q8a : forms.f32) = true;
  };
  llvm::for_each(moe.getGates(), read);
  llvm::for_each(moe.getUps(), read);
  if (!moe.getShared().empty())
    llvm::for_each(moe.getShared().take_front(2), read);
  forms.f32 |= bool(moe.getSharedGate());
}

LogicalResult lowerFusedMoe(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::FusedMoeOp>(operation);
  if (!op.getArm())
    return op.emitOpError() << "has no arm: run cmf-specialise first";
  MoeLowering(op, lowering).run();
  return success();
}

LogicalResult lowerUnfusedMoe(Operation* op, Lowering&) {
  return op->emitOpError() << "must become a cmf.fused_moe first: run cmf-fuse-moe";
}

} // namespace cortiq::compiler
