#include "compiler/passes/LowRank.h"
#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

void fusedMatmulForms(OpOperand& use, Forms& forms) {
  auto matmul = cast<cmf::FusedMatmulOp>(use.getOwner());
  if (use.getOperandNumber() != 0) {
    forms.f32 = true;
    return;
  }
  for (Value w : matmul.getWeights()) {
    const bool q8a = lowRankWeight(w)
                         ? formForFactor(weightOf(w), formats::CodecId::kBLRV, *matmul.getArm()) == kernel::Form::q8a
                         : formFor(weightOf(w), *matmul.getArm()) == kernel::Form::q8a && !hasColumnScales(weightOf(w));
    (q8a ? forms.q8a : forms.f32) = true;
  }
}

namespace {

struct Part {
  cmf::WeightOp weight;
  kernel::SpecAttr spec;
  Value input, bias, residual, out;
};

void emitProducts(cmf::FusedMatmulOp op, Lowering& lowering, StringRef name, ArrayRef<Part> parts) {
  if (parts.empty())
    return;
  OpBuilder& builder = lowering.builder();
  lowering.stage(op, name, [&] {
    auto matmul = builder.create<kernel::MatmulOp>(op.getLoc());
    builder.createBlock(&matmul.getBody());
    for (const Part& part : parts)
      builder.create<kernel::CallOp>(op.getLoc(), lowering.tables().matrix(part.weight), part.input,
                                     part.bias ? lowering.tables().vector(weightOf(part.bias)) : FlatSymbolRefAttr(),
                                     part.residual, part.out, part.spec, ArrayAttr(), ArrayAttr(), lowering.i64Attr(0),
                                     lowering.i64Attr(0));
  });
}

// The products of one operation, stage by stage. A low-rank weight adds stages in front, which write only what the last
// stage reads: where a case has other weights and no such stages, the model's own run in vain and do no harm.
class Products {
public:
  Products(cmf::FusedMatmulOp op, Lowering& lowering) : op_(op), lowering_(lowering) {}

  LogicalResult add(unsigned i) {
    cmf::WeightOp weight = weightOf(op_.getWeights()[i]);
    Value residual = op_.getResidual() ? lowering_.f32Of(op_.getResidual()) : Value();
    weights_.push_back(weight);
    if (lowRankWeight(weight)) {
      if (!knowsItsRank(weight))
        return weight.emitOpError() << "is low-rank, but its source does not say of what rank";
      addLowRank(weight, op_.getBiasOf(i), residual, lowering_.newF32(op_.getResult(i)));
      return success();
    }
    const kernel::Form form = formFor(weight, *op_.getArm());
    const kernel::SpecAttr spec = lowering_.specOf(weight, form, bool(op_.getBiasOf(i)), bool(residual));
    Value input = lowering_.inputFor(op_, op_.getX(), weight, form);
    last_.push_back({weight, spec, input, op_.getBiasOf(i), residual, lowering_.newF32(op_.getResult(i))});
    return success();
  }

  void emit() {
    const std::string name = lowering_.nameOf(weights_);
    emitProducts(op_, lowering_, name + " v", first_);
    for (auto [from, to] : quantized_)
      lowering_.stage(op_, name + " u input", [&, from = from, to = to] {
        lowering_.builder().create<kernel::QuantizeOp>(op_.getLoc(), from, FlatSymbolRefAttr(), Value(), to);
      });
    emitProducts(op_, lowering_, name + " u", before_);
    emitProducts(op_, lowering_, name, last_);
  }

private:
  void addLowRank(cmf::WeightOp whole, Value bias, Value residual, Value out) {
    const kernel::Form vForm = formForFactor(whole, formats::CodecId::kBLRV, *op_.getArm());
    const kernel::Form uForm = formForFactor(whole, formats::CodecId::kBLRU, *op_.getArm());
    for (int64_t path = 1, paths = whole.getSourceAttr().getLowRank().getPaths(); path <= paths; ++path) {
      cmf::WeightOp v = lowering_.factorOf(whole, formats::CodecId::kBLRV, path);
      cmf::WeightOp u = lowering_.factorOf(whole, formats::CodecId::kBLRU, path);
      const int64_t rank = v.getType().getRows();
      Value inner = lowering_.factorBuffer(v, kernel::Form::f32, rank), input = inner;
      first_.push_back(
          {v, lowering_.specOf(v, vForm, false, false), lowering_.inputFor(op_, op_.getX(), v, vForm), {}, {}, inner});
      if (uForm == kernel::Form::q8a) {
        input = lowering_.factorBuffer(v, kernel::Form::q8a, rank);
        quantized_.push_back({inner, input});
      }
      const bool isLast = path == paths;
      Value sum = isLast ? out : lowering_.factorBuffer(u, kernel::Form::f32, u.getType().getRows());
      (isLast ? last_ : before_)
          .push_back({u, lowering_.specOf(u, uForm, bool(bias), bool(residual)), input, bias, residual, sum});
      bias = {};
      residual = sum;
    }
  }

  cmf::FusedMatmulOp op_;
  Lowering& lowering_;
  SmallVector<cmf::WeightOp> weights_;
  SmallVector<Part> first_, before_, last_;
  SmallVector<std::pair<Value, Value>> quantized_;
};

} // namespace

LogicalResult lowerFusedMatmul(Operation* operation, Lowering& lowering) {
  auto op = cast<cmf::FusedMatmulOp>(operation);
  if (!op.getArm())
    return op.emitOpError() << "has no arm: run cmf-specialise first";
  Products products(op, lowering);
  for (unsigned i = 0; i < op.getWeights().size(); ++i)
    if (failed(products.add(i)))
      return failure();
  products.emit();
  return success();
}

LogicalResult lowerUnfused(Operation* op, Lowering&) {
  return op->emitOpError() << "must become a cmf.fused_matmul first: run cmf-fuse-dequant-matmul";
}

LogicalResult lowerWeight(Operation*, Lowering&) {
  return success(); // an entry of the weight table, made where it is used
}

} // namespace cortiq::compiler
