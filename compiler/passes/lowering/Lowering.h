#pragma once

// Lowering a graph to the kernel dialect. Every activation of the graph becomes up to two buffers, one a form that
// somebody reads, and each operation becomes one stage or several. How an operation is lowered stands in its file, with
// one row in the table.

#include "compiler/passes/HeadChain.h"
#include "compiler/passes/KernelTables.h"
#include "dialects/CMF/IR/DraftSection.h"

#include "llvm/ADT/DenseSet.h"

#include <map>
#include <tuple>

namespace cortiq::compiler {

/// Forms of an activation that somebody reads.
struct Forms {
  bool f32 = false, q8a = false;
};

/// The buffers that hold one activation; null where a form is not kept.
struct Buffers {
  mlir::Value f32, q8a;
  llvm::DenseMap<mlir::Operation*, mlir::Value> scaled; ///< multiplied by the column scales of a weight
};

/// The form in which kernels read the activations for a weight of this type and layout.
kernel::Form formFor(cmf::WeightOp weight, cmf::Arm arm);
/// The same for a factor of a low-rank weight, which need not be made yet.
kernel::Form formForFactor(cmf::WeightOp whole, formats::CodecId codec, cmf::Arm arm);
/// Whether the weight's input is multiplied by column scales first.
bool hasColumnScales(cmf::WeightOp weight);
inline cmf::WeightOp weightOf(mlir::Value v) {
  return v.getDefiningOp<cmf::WeightOp>();
}

/// A case in which operands that are a cmf.overlay stand for other weights than the model's own: the index of a skill,
/// or kBlendCase.
using OverlayCase = int64_t;
inline constexpr OverlayCase kBlendCase = -1;

/// The program being made. Operations are lowered in the graph's order. An operation with overlay operands is lowered
/// once for the model's own weights and once a case, its operands changed for that time, so that no lowering has to
/// know of overlays; where the stages differ they become alternatives of one kernel.choose.
class Lowering {
public:
  Lowering(mlir::ModuleOp module, mlir::func::FuncOp forward);

  mlir::LogicalResult run();

  mlir::OpBuilder& builder() { return builder_; }
  KernelTables& tables() { return tables_; }
  /// The instruction set that kernels are made for.
  llvm::StringRef isa() { return target_.getName().getValue(); }
  /// The kernels of a matrix that reads its input in `form`.
  kernel::SpecAttr specOf(cmf::WeightOp weight, kernel::Form form, bool bias, bool residual);

  mlir::Value alloc(mlir::Location loc, kernel::Form form, int64_t elements, int64_t records = 1);
  static int64_t width(mlir::Value v) { return mlir::cast<mlir::RankedTensorType>(v.getType()).getDimSize(1); }
  mlir::Value allocF32(mlir::Value v) { return alloc(v.getLoc(), kernel::Form::f32, width(v)); }
  mlir::Value allocQ8(mlir::Value v) { return alloc(v.getLoc(), kernel::Form::q8a, width(v)); }

  /// The buffers of an activation that was lowered.
  Buffers& buffersOf(mlir::Value v) { return buffers_[v]; }
  mlir::Value f32Of(mlir::Value v) { return buffers_[v].f32; }
  /// A fresh f32 buffer for a result.
  mlir::Value newF32(mlir::Value v) {
    Buffers& b = buffers_[v];
    return inCase_ && b.f32 ? b.f32 : b.f32 = allocF32(v);
  }
  /// The buffers of a result that its producer writes in every form that is read.
  Buffers& allocForms(mlir::Value v);
  /// The buffer in which `weight` reads activation `v`: quantized or scaled now if its producer could not.
  mlir::Value inputFor(mlir::Operation* op, mlir::Value v, cmf::WeightOp weight, kernel::Form form);

  /// The factor `codec` of path `path` of a low-rank weight that skills replace or that replaces one;
  /// cmf-split-low-rank has split all others.
  cmf::WeightOp factorOf(cmf::WeightOp whole, formats::CodecId codec, int64_t path);
  /// A buffer for what `factor` computes on the way, or for its input: one, whatever the case.
  mlir::Value factorBuffer(cmf::WeightOp factor, kernel::Form form, int64_t elements);

  /// "layer 3: q_proj+k_proj+v_proj" from "model.layers.3.self_attn.q_proj.weight" and its siblings. The layer is also
  /// the one of the operations without weights that follow.
  std::string nameOf(llvm::ArrayRef<cmf::WeightOp> weights);
  /// "layer 3: " + `words`, the layer being that of the latest weight.
  std::string inLayer(llvm::StringRef words) const { return layer_ + words.str(); }

  /// Runs `body` with the builder inside a new stage.
  void stage(mlir::Operation* op, llvm::StringRef name, llvm::function_ref<void()> body);

  mlir::FloatAttr f32Attr(double value) { return builder_.getF32FloatAttr(static_cast<float>(value)); }
  mlir::IntegerAttr i64Attr(int64_t value) { return builder_.getI64IntegerAttr(value); }
  mlir::UnitAttr unitAttr(bool set) { return set ? builder_.getUnitAttr() : mlir::UnitAttr(); }

  const AttentionChains& chainsOf(cmf::AttentionOp attention) { return chains_.find(attention)->second; }
  /// A factor that a later operation will apply to the value, 1 unless it was stated.
  double pendingFactor(mlir::Value v) const;
  void setPendingFactor(mlir::Value v, double factor) { pendingFactor_[v] = factor; }

private:
  using CaseStages = std::vector<kernel::StageOp>;

  Forms formsOf(mlir::Value value);
  mlir::LogicalResult lowerOne(mlir::Operation* op);

  // lowering/Overlay.cpp
  llvm::SmallVector<mlir::Operation*> withAbsorbed(mlir::Operation* op) const;
  llvm::SmallVector<OverlayCase> casesOf(llvm::ArrayRef<mlir::Operation*> ops) const;
  /// Runs `body` with the overlay operands of `ops` replaced by what `which` makes of them; without a case by the
  /// model's own weights.
  mlir::LogicalResult inCase(llvm::ArrayRef<mlir::Operation*> ops, std::optional<OverlayCase> which,
                             llvm::function_ref<mlir::LogicalResult()> body);
  mlir::Value chosenWeight(cmf::OverlayOp overlay, OverlayCase which);
  mlir::Value blendWeight(cmf::OverlayOp overlay);
  mlir::LogicalResult mergeCases(mlir::Operation* op, const CaseStages& base, llvm::ArrayRef<OverlayCase> cases,
                                 llvm::ArrayRef<CaseStages> stages);
  void findGates();

  mlir::func::FuncOp forward_;
  KernelTables tables_;
  mlir::OpBuilder builder_;
  cmf::TargetAttr target_;
  cmf::DraftSection section_;
  kernel::ProgramOp program_;
  std::map<mlir::Value, Buffers,
           decltype([](mlir::Value a, mlir::Value b) { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); })>
      buffers_;
  llvm::DenseMap<mlir::Operation*, AttentionChains> chains_;
  llvm::DenseMap<mlir::Value, double> pendingFactor_;
  llvm::DenseSet<mlir::Operation*> absorbed_;
  /// The last operations that read or write the sequence's state: of the trunk, and of the draft.
  mlir::Operation *lastState_ = nullptr, *lastDraftState_ = nullptr;
  kernel::AllocOp lastAlloc_;
  std::string layer_;   ///< "layer 3: ", of the latest weight
  int64_t skills_ = 0;  ///< of the model
  bool inCase_ = false; ///< a second lowering of an operation is under way
  kernel::StageOp lastStage_;
  CaseStages* caseStages_ = nullptr;                     ///< collects the stages of the operation being lowered
  llvm::DenseMap<mlir::Value, mlir::Value> caseInputs_;  ///< quantized for the case under way alone
  llvm::DenseMap<mlir::Operation*, mlir::Value> blends_; ///< by cmf.overlay
  std::map<std::tuple<mlir::Operation*, formats::CodecId, int64_t>, cmf::WeightOp> factors_;
  std::map<std::pair<mlir::Operation*, kernel::Form>, mlir::Value> factorBuffers_;
  llvm::DenseMap<mlir::Operation*, int64_t> gates_; ///< layer whose gate an operation stands behind
};

/// One row of the table: how an operation is lowered, and in which forms it reads an operand (null: as f32).
struct OpLowering {
  llvm::StringLiteral name;
  mlir::LogicalResult (*lower)(mlir::Operation* op, Lowering& lowering);
  void (*forms)(mlir::OpOperand& use, Forms& forms) = nullptr;
};

/// The row of `op`, or null.
const OpLowering* findLowering(mlir::Operation* op);

mlir::LogicalResult lowerActivate(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerAdd(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerAddRmsNorm(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerAttention(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerCausalConv(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerClusterLogits(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerConcatHeads(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerEmbed(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerFusedMatmul(mlir::Operation* op, Lowering& lowering);
void fusedMatmulForms(mlir::OpOperand& use, Forms& forms);
mlir::LogicalResult lowerFusedMoe(mlir::Operation* op, Lowering& lowering);
void fusedMoeForms(mlir::OpOperand& use, Forms& forms);
mlir::LogicalResult lowerGate(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerGatedDelta(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerGlu(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerHadamard(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerKda(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerHeadMatmul(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerLayerNorm(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerLayerGate(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerPlace(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerReturn(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerResonance(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerRmsNorm(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerRope(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerScale(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerShortConv(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerSoftcap(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerTap(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerUnfused(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerUnfusedMoe(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerVmfPhase(mlir::Operation* op, Lowering& lowering);
mlir::LogicalResult lowerWeight(mlir::Operation* op, Lowering& lowering);

} // namespace cortiq::compiler
