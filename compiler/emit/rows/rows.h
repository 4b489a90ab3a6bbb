#pragma once

// Calls of the kernel dialect as rows of the artifact's schema: one row of the table an operation. Symbols become
// indices of the tables, buffers become slots.

#include "dialects/Kernel/IR/KernelDialect.h"
#include "formats/artifact/artifact_generated.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace cortiq::compiler {

/// Where every symbol and buffer of a module stands in its table.
class ProgramNumbers {
public:
  explicit ProgramNumbers(mlir::ModuleOp module);

  static constexpr uint32_t kNone = 0xFFFFFFFF; ///< the schema's word for "absent"

  void addSlot(mlir::Value buffer) { slots_.try_emplace(buffer, slots_.size()); }
  uint32_t slot(mlir::Value buffer) const { return buffer ? slots_.lookup(buffer) : kNone; }
  uint32_t weight(std::optional<llvm::StringRef> symbol) const { return index(weights_, symbol); }
  uint32_t cache(std::optional<llvm::StringRef> symbol) const { return index(caches_, symbol); }
  uint32_t rope(std::optional<llvm::StringRef> symbol) const { return index(ropes_, symbol); }
  uint32_t state(std::optional<llvm::StringRef> symbol) const { return index(states_, symbol); }
  std::vector<uint32_t> kernels(mlir::ArrayAttr symbols) const;

private:
  using Numbers = llvm::StringMap<uint32_t>;

  static uint32_t index(const Numbers& numbers, std::optional<llvm::StringRef> symbol) {
    return symbol ? numbers.lookup(*symbol) : kNone;
  }

  Numbers weights_, kernels_, caches_, ropes_, states_;
  llvm::DenseMap<mlir::Value, uint32_t> slots_;
};

inline float toFloat(const llvm::APFloat& value) {
  return value.convertToFloat();
}

/// Where the results of `op` go: as floats, as int8, or both.
template <class Op, class Row>
void setResults(Op op, const ProgramNumbers& numbers, Row& row) {
  row.out = numbers.slot(op.getOut());
  row.act_out = numbers.slot(op.getAct());
}

/// A gated activation, of a layer or of experts.
template <class Op, class Row>
void setGatedUnit(Op op, const ProgramNumbers& numbers, Row& row) {
  row.gate = numbers.slot(op.getGate());
  row.up = numbers.slot(op.getUp());
  row.activation = static_cast<artifact::Activation>(op.getActivation());
  row.alpha = toFloat(op.getAlpha());
  row.limit = toFloat(op.getLimit());
  setResults(op, numbers, row);
}

/// Fills `out` with the row of `op`, any call of a stage.
void fillRow(mlir::Operation* op, const ProgramNumbers& numbers, artifact::OpUnion& out);

artifact::AddOpT rowOf(kernel::AddOp op, const ProgramNumbers& numbers);
artifact::AttentionOpT rowOf(kernel::AttentionOp op, const ProgramNumbers& numbers);
artifact::AttentionPrepOpT rowOf(kernel::AttentionPrepOp op, const ProgramNumbers& numbers);
artifact::CausalConvOpT rowOf(kernel::CausalConvOp op, const ProgramNumbers& numbers);
artifact::ClusterLogitsOpT rowOf(kernel::ClusterLogitsOp op, const ProgramNumbers& numbers);
artifact::ConcatHeadsOpT rowOf(kernel::ConcatHeadsOp op, const ProgramNumbers& numbers);
artifact::EmbedOpT rowOf(kernel::EmbedOp op, const ProgramNumbers& numbers);
artifact::GateOpT rowOf(kernel::GateOp op, const ProgramNumbers& numbers);
artifact::GatedDeltaOpT rowOf(kernel::GatedDeltaOp op, const ProgramNumbers& numbers);
artifact::GluOpT rowOf(kernel::GluOp op, const ProgramNumbers& numbers);
artifact::HadamardOpT rowOf(kernel::HadamardOp op, const ProgramNumbers& numbers);
artifact::KdaOpT rowOf(kernel::KdaOp op, const ProgramNumbers& numbers);
artifact::LayerGateOpT rowOf(kernel::LayerGateOp op, const ProgramNumbers& numbers);
artifact::LogitsOpT rowOf(kernel::LogitsOp op, const ProgramNumbers& numbers);
artifact::MatmulOpT rowOf(kernel::MatmulOp op, const ProgramNumbers& numbers);
artifact::MoeCombineOpT rowOf(kernel::MoeCombineOp op, const ProgramNumbers& numbers);
artifact::MoeGatherOpT rowOf(kernel::MoeGatherOp op, const ProgramNumbers& numbers);
artifact::MoeGluOpT rowOf(kernel::MoeGluOp op, const ProgramNumbers& numbers);
artifact::MoeMatmulOpT rowOf(kernel::MoeMatmulOp op, const ProgramNumbers& numbers);
artifact::MoePlanOpT rowOf(kernel::MoePlanOp op, const ProgramNumbers& numbers);
artifact::MoeRouteOpT rowOf(kernel::MoeRouteOp op, const ProgramNumbers& numbers);
artifact::NormOpT rowOf(kernel::NormOp op, const ProgramNumbers& numbers);
artifact::PlaceOpT rowOf(kernel::PlaceOp op, const ProgramNumbers& numbers);
artifact::QuantizeOpT rowOf(kernel::QuantizeOp op, const ProgramNumbers& numbers);
artifact::ResonanceOpT rowOf(kernel::ResonanceOp op, const ProgramNumbers& numbers);
artifact::ShortConvOpT rowOf(kernel::ShortConvOp op, const ProgramNumbers& numbers);
artifact::TapOpT rowOf(kernel::TapOp op, const ProgramNumbers& numbers);
artifact::VmfPhaseOpT rowOf(kernel::VmfPhaseOp op, const ProgramNumbers& numbers);

} // namespace cortiq::compiler
