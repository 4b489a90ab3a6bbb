// cmf.fused_moe: router, choice, plan, experts on pairs, combination. The shared expert's products stand beside the
// routed stages that they do not depend on.

#include "compiler/passes/LowRank.h"
#include "compiler/passes/lowering/Lowering.h"

#include "formats/layout/layout.h"

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
  SmallVector<Value> weights, biases;
  bool exact = false; ///< reads f32 whatever the arm

  kernel::Form formOf(cmf::WeightOp weight, cmf::Arm arm) const {
    return exact ? kernel::Form::f32 : formFor(weight, arm);
  }
  bool any(cmf::Arm arm, kernel::Form form, bool scaled) const {
    return llvm::any_of(
        weights, [&](Value w) { return formOf(weightOf(w), arm) == form && hasColumnScales(weightOf(w)) == scaled; });
  }
};

/// The factors of a role whose weights are all low-rank, one role each a path; `v` is empty where none is.
struct Factors {
  SmallVector<Role> v, u;
  int64_t rank = 0; ///< the largest
};

/// Splits a role of low-rank weights. Fails where its weights differ in kind or in their number of paths.
FailureOr<Factors> factorsOf(const Role& role, cmf::FusedMoeOp op) {
  Factors factors;
  SmallVector<cmf::WeightOp> wholes;
  for (Value weight : role.weights)
    if (cmf::WeightOp whole = lowRankWeight(weight))
      wholes.push_back(whole);
  if (wholes.empty())
    return factors;
  auto pathsOf = [](cmf::WeightOp whole) { return whole.getSourceAttr().getLowRank().getPaths(); };
  if (wholes.size() != role.weights.size() || !llvm::all_of(wholes, knowsItsRank) ||
      llvm::any_of(wholes, [&](cmf::WeightOp whole) { return pathsOf(whole) != pathsOf(wholes[0]); }))
    return op.emitOpError("has low-rank experts beside others, or of different numbers of paths");
  OpBuilder builder(op.getContext());
  for (int64_t path = 1; path <= pathsOf(wholes[0]); ++path) {
    Role v, u;
    u.exact = true; // the inner vector is short: quantizing it would save nothing
    if (path == 1)
      u.biases = role.biases;
    for (cmf::WeightOp whole : wholes) {
      builder.setInsertionPointAfter(whole);
      for (auto [list, codec] : {std::pair(&v, formats::CodecId::kBLRV), std::pair(&u, formats::CodecId::kBLRU)}) {
        cmf::WeightOp factor = lowRankFactor(builder, whole, codec, path);
        const cmf::WeightType type = factor.getType();
        const bool r16 = formats::r16_format(type.getCodec(), type.getCols()).ok();
        factor.setLayoutAttr(cmf::LayoutAttr::get(op.getContext(), r16 ? cmf::Layout::r16 : cmf::Layout::verbatim));
        list->weights.push_back(factor);
      }
      factors.rank = std::max<int64_t>(factors.rank, whole.getSourceAttr().getLowRank().getRank());
    }
    factors.v.push_back(std::move(v));
    factors.u.push_back(std::move(u));
  }
  return factors;
}

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
        gates_{llvm::to_vector(op.getGates()), llvm::to_vector(op.getGateBiases())},
        ups_{llvm::to_vector(op.getUps()), llvm::to_vector(op.getUpBiases())},
        downs_{llvm::to_vector(op.getDowns()), llvm::to_vector(op.getDownBiases())} {
    for (Value gate : op.getGates())
      widths_.push_back(weightOf(gate).getType().getRows());
  }

  LogicalResult run() {
    for (auto [role, factors] :
         {std::pair(&gates_, &gateFactors_), std::pair(&ups_, &upFactors_), std::pair(&downs_, &downFactors_)}) {
      FailureOr<Factors> split = factorsOf(*role, op_);
      if (failed(split))
        return failure();
      *factors = std::move(*split);
    }
    lowerTokenProducts();
    lowerRoute();
    if (!op_.getShared().empty())
      lowerSharedDown();
    const int64_t widest = *llvm::max_element(widths_);
    Value gate = pairs(kernel::Form::f32, widest), up = pairs(kernel::Form::f32, widest);
    makeGates(widest);
    lowerGateUp(gate, up);
    Value out = pairs(kernel::Form::f32, hidden_);
    lowerDown(gate, up, out);
    Value residual = op_.getResidual() ? lowering_.f32Of(op_.getResidual()) : Value();
    Value result = lowering_.newF32(op_.getResult());
    lowering_.stage(op_, lowering_.inLayer("combine"), [&] {
      builder_.create<kernel::MoeCombineOp>(op_.getLoc(), plan_, weights_, out, sharedOut_, sharedGate_, residual,
                                            result, lowering_.i64Attr(experts_));
    });
    return success();
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
    SmallVector<Product> list;
    SmallVector<cmf::WeightOp> names;
    if (op_.getRouter()) {
      list.push_back(product(op_.getRouterX(), op_.getRouter(), op_.getRouterBias(), /*exact=*/true));
      names.push_back(weightOf(op_.getRouter()));
      logits_ = list[0].out;
    } else {
      logits_ = lowering_.f32Of(op_.getRouterX());
    }
    if (!op_.getShared().empty()) {
      for (unsigned i : {0, 1}) {
        list.push_back(product(op_.getX(), op_.getShared()[i], Value(), /*exact=*/false));
        names.push_back(weightOf(op_.getShared()[i]));
        sharedHalves_[i] = list.back().out;
      }
      if (op_.getSharedGate()) {
        list.push_back(product(op_.getX(), op_.getSharedGate(), Value(), /*exact=*/true));
        sharedGate_ = list.back().out;
      }
    }
    if (!list.empty())
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

  /// Buffers for the gates, one pair of forms a reader of them.
  void makeGates(int64_t widest) {
    if (downFactors_.v.empty())
      gateReaders_.push_back(&downs_);
    for (const Role& v : downFactors_.v)
      gateReaders_.push_back(&v);
    for (const Role* role : gateReaders_) {
      auto reads = [&](kernel::Form form) { return role->any(arm_, form, false) || role->any(arm_, form, true); };
      gated_.push_back({reads(kernel::Form::f32) ? pairs(kernel::Form::f32, widest) : Value(),
                        reads(kernel::Form::q8a) ? pairs(kernel::Form::q8a, widest) : Value()});
    }
  }

  void lowerGateUp(Value gate, Value up) {
    // What a token's experts read of it, and the same in the pairs' order.
    TwoForms token, plain;
    SmallVector<std::pair<const Role*, TwoForms>> scaled; // inputs of weights with column scales
    for (auto [role, factors] : {std::pair(&gates_, &gateFactors_), std::pair(&ups_, &upFactors_)}) {
      if (!factors->v.empty()) {
        for (const Role& v : factors->v)
          scaled.emplace_back(&v, scaledPairs(v));
        continue;
      }
      for (Value w : role->weights)
        if (kernel::Form form = formFor(weightOf(w), arm_); !hasColumnScales(weightOf(w)) && !token.of(form)) {
          (form == kernel::Form::q8a ? token.q8a : token.f32) = lowering_.inputFor(op_, op_.getX(), weightOf(w), form);
          (form == kernel::Form::q8a ? plain.q8a : plain.f32) = pairs(form, hidden_);
        }
      scaled.emplace_back(role, scaledPairs(*role));
    }
    lowering_.stage(op_, lowering_.inLayer("gather"), [&] {
      auto gather = [&](const TwoForms& from, const TwoForms& to, ArrayAttr scales) {
        if (!to.empty())
          builder_.create<kernel::MoeGatherOp>(op_.getLoc(), plan_, from.f32, from.q8a, to.f32, to.q8a,
                                               lowering_.i64Attr(experts_), scales);
      };
      gather(token, plain, ArrayAttr());
      for (const auto& [role, forms] : scaled)
        gather({lowering_.f32Of(op_.getX()), Value()}, forms, columnScales(*role));
    });
    auto scaledOf = [&](const Role& role) {
      return llvm::find_if(scaled, [&](const auto& entry) { return entry.first == &role; })->second;
    };
    Waves waves;
    addProduct(waves, gates_, gateFactors_, plain, scaledOf, token, gate);
    addProduct(waves, ups_, upFactors_, plain, scaledOf, token, up);
    run(waves, "experts' gate_proj+up_proj");
  }

  void lowerDown(Value gate, Value up, Value out) {
    lowering_.stage(op_, lowering_.inLayer("experts' gate"), [&] {
      for (auto [role, forms] : llvm::zip(gateReaders_, gated_))
        builder_.create<kernel::MoeGluOp>(op_.getLoc(), activation(), plan_, gate, up, forms.f32, forms.q8a,
                                          builder_.getDenseI64ArrayAttr(widths_), columnScales(*role), alpha(),
                                          limit());
    });
    Waves waves;
    addProduct(
        waves, downs_, downFactors_, gated_[0],
        [&](const Role& role) { return gated_[llvm::find(gateReaders_, &role) - gateReaders_.begin()]; }, {}, out);
    run(waves, "experts' down_proj");
  }

  /// Products by the stage in which they run.
  using Waves = SmallVector<SmallVector<std::function<void()>>>;

  void addToWave(Waves& waves, size_t number, std::function<void()> product) {
    if (waves.size() <= number)
      waves.resize(number + 1);
    waves[number].push_back(std::move(product));
  }

  void run(Waves& waves, StringRef words) {
    for (auto& wave : waves)
      lowering_.stage(op_, lowering_.inLayer(words), [&] {
        for (auto& product : wave)
          product();
      });
  }

  /// A role's products with the pairs: at once, or through the factors of its low-rank weights, whose paths are added
  /// up.
  void addProduct(Waves& waves, const Role& role, const Factors& factors, const TwoForms& plain,
                  llvm::function_ref<TwoForms(const Role&)> scaledOf, const TwoForms& token, Value out) {
    if (factors.v.empty()) {
      addToWave(waves, 0, [=, this, &role, scaled = scaledOf(role)] {
        matmul(role, plain, scaled, token, Value(), out, &role == &gates_);
      });
      return;
    }
    Value sum;
    for (size_t path = 0; path < factors.v.size(); ++path) {
      const Role &v = factors.v[path], &u = factors.u[path];
      Value inner = pairs(kernel::Form::f32, factors.rank);
      Value result = path + 1 == factors.v.size() ? out : pairs(kernel::Form::f32, bufferWidth(out));
      addToWave(waves, 0, [=, this, &v, scaled = scaledOf(v)] { matmul(v, {}, scaled, {}, Value(), inner); });
      addToWave(waves, path + 1, [=, this, &u] { matmul(u, {inner, Value()}, {}, {}, sum, result); });
      sum = result;
    }
  }

  static int64_t bufferWidth(Value buffer) { return cast<kernel::BufferType>(buffer.getType()).getElements(); }

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

  void matmul(const Role& role, const TwoForms& plain, const TwoForms& scaled, const TwoForms& token, Value sum,
              Value out, bool beforeGates = false) {
    SmallVector<Value> gates;
    for (const TwoForms& forms : gated_)
      for (Value buffer : {forms.f32, forms.q8a})
        if (beforeGates && gated_.size() == 1 && buffer)
          gates.push_back(buffer);
    auto matmul = builder_.create<kernel::MoeMatmulOp>(op_.getLoc(), plan_, gates);
    OpBuilder::InsertionGuard guard(builder_);
    builder_.createBlock(&matmul.getBody());
    for (auto [e, value] : llvm::enumerate(role.weights)) {
      cmf::WeightOp weight = weightOf(value);
      const kernel::Form form = role.formOf(weight, arm_);
      const bool hasScales = hasColumnScales(weight);
      Value bias = role.biases.empty() ? Value() : role.biases[e];
      builder_.create<kernel::ExpertOp>(
          op_.getLoc(), lowering_.tables().matrix(weight), (hasScales ? scaled : plain).of(form),
          hasScales ? Value() : token.of(form), bias ? lowering_.tables().vector(weightOf(bias)) : FlatSymbolRefAttr(),
          sum, out, lowering_.specOf(weight, form, bool(bias), bool(sum)), ArrayAttr(), ArrayAttr());
    }
  }

  cmf::FusedMoeOp op_;
  Lowering& lowering_;
  OpBuilder& builder_;
  cmf::Arm arm_;
  int64_t experts_, choices_, hidden_;
  Role gates_, ups_, downs_;
  Factors gateFactors_, upFactors_, downFactors_;
  SmallVector<int64_t> widths_;
  SmallVector<const Role*> gateReaders_; ///< each reads the gates in a form of its own
  SmallVector<TwoForms> gated_;          ///< by reader
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
    // The first factors of a low-rank weight have column scales.
    const bool q8a =
        formFor(weightOf(w), *moe.getArm()) == kernel::Form::q8a && !hasColumnScales(weightOf(w)) && !lowRankWeight(w);
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
  return MoeLowering(op, lowering).run();
}

LogicalResult lowerUnfusedMoe(Operation* op, Lowering&) {
  return op->emitOpError() << "must become a cmf.fused_moe first: run cmf-fuse-moe";
}

} // namespace cortiq::compiler
