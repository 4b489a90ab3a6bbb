#pragma once

// What the parts of the decoder builder share: the words of a model as operations.

#include "compiler/frontend/ModelDescription.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace cortiq::compiler {

/// Makes operations at its insertion point from a description's weights and numbers.
class GraphBuilder {
public:
  GraphBuilder(mlir::MLIRContext& context, const ModelDescription& model);

  const ModelDescription& model() const { return model_; }
  mlir::OpBuilder& ops() { return builder_; }
  mlir::Location loc() const { return loc_; }

  template <class Op, class... Args>
  Op create(Args&&... args) {
    return builder_.create<Op>(loc_, std::forward<Args>(args)...);
  }

  mlir::RankedTensorType activations(int64_t features);
  mlir::IntegerAttr number(int64_t value) { return builder_.getI64IntegerAttr(value); }
  mlir::FloatAttr real(double value) { return builder_.getF64FloatAttr(value); }
  /// The table of rotary frequencies, null where nothing rotates.
  cmf::RopeAttr rope(size_t table) const { return ropes_[table]; }

  /// A number for the state of the next recurrent operation.
  mlir::IntegerAttr nextState() { return number(states_++); }

  /// The weight's value, created where it is first needed; null when the model has none of that name. A weight that
  /// skills replace is a cmf.overlay.
  mlir::Value weight(const std::string& name);
  /// A whole linear layer: `name`.weight (or `weightName`) with `name`.bias if there is one.
  mlir::Value linear(mlir::Value x, const std::string& name, const std::string& weightName = {});
  /// The norm `name`.weight, over whole rows (of the model's kind of norm) or groups; `x` itself when the model has no
  /// such norm.
  mlir::Value norm(mlir::Value x, const std::string& name, int64_t group = 0);
  /// A number of the model's activation, null when it has none.
  mlir::FloatAttr activationNumber(double value);
  /// The model's activation of `gate`, times `up`.
  mlir::Value gated(mlir::Value gate, mlir::Value up);
  /// The RMS norm `name`.weight of whole rows whose factors are what they are, whatever the model's other norms do.
  mlir::Value plainNorm(mlir::Value x, const std::string& name);
  /// A norm by `factors`, or by none when they are null.
  mlir::Value rmsNorm(mlir::Value x, mlir::Value factors, int64_t group);

  /// The inverse of the model's transform of activations, of all features of `x`.
  mlir::Value untransformed(mlir::Value x);

private:
  /// `x` as a weight reads it: behind the model's transform where that tensor asks for it, made once for all its
  /// readers.
  mlir::Value transformed(mlir::Value x, const WeightRef& reader);
  mlir::DenseBoolArrayAttr signs(mlir::Value x);
  mlir::Value weightOp(const std::string& name, const WeightRef& ref);

  const ModelDescription& model_;
  mlir::OpBuilder builder_;
  mlir::Location loc_;
  mlir::SmallVector<cmf::RopeAttr> ropes_;
  llvm::StringMap<mlir::Value> values_;
  llvm::DenseMap<mlir::Value, mlir::Value> transformed_;
  int64_t states_ = 0;
};

} // namespace cortiq::compiler
