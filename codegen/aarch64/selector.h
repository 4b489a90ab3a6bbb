#pragma once

// Instruction selection: a vec.kernel becomes a MachineFunction on the rows of the AArch64 instruction table.
//
// Two things differ from a plain walk over the ops. A value that is the same in every lane and comes from memory
// (vec.load_splat) need not fill a vector: products take it as one lane of a register, so that up to four neighbours
// come with one load. And of loads that lie side by side the second follows the first at once, so that the emitter can
// make one instruction of both.

#include "codegen/aarch64/features.h"
#include "codegen/aarch64/instruction_rows.h"
#include "codegen/machine/selector.h"
#include <tuple>

namespace cortiq::codegen::aarch64 {

inline constexpr unsigned kVectorBits = 128;

class Selector final : public MachineSelector {
public:
  Selector(vec::KernelOp kernel, const Aarch64Features& features)
      : MachineSelector(kernel, kVectorBits), features_(features) {}

  /// Selects the whole kernel. After it, `function()` and `pool()` hold the result.
  Status run();

private:
  friend struct OpSelectors; // select_ops.cpp: one function an op

  //--- values and instructions ----------------------------------------------------------------------------------------
  VReg new_vector() { return function_.new_vreg(RegClass::kVector, kVectorBits); }
  VReg splat_constant(uint64_t lane, unsigned lane_bytes) {
    return MachineSelector::splat_constant(lane, lane_bytes, kVectorBits);
  }
  VReg add_named(std::string_view name, std::initializer_list<VReg> uses, int64_t imm = 0);

  //--- addresses (addressing.cpp) -------------------------------------------------------------------------------------
  struct Address {
    VReg base = kNoReg;
    int64_t disp = 0;
  };
  Address address(mlir::Value ptr);
  /// A memory operand that an access of `bits` can encode.
  MemRef memory(mlir::Value ptr, int64_t offset, unsigned bits);
  /// A memory operand without displacement.
  MemRef exact_memory(mlir::Value ptr, int64_t offset);
  VReg materialise(const Address& at);
  VReg base_plus(VReg base, int64_t disp);
  VReg scaled_sum(VReg base, VReg index, int64_t scale);
  void select_ptr_offset(vec::PtrOffsetOp op);

  //--- loads (loads.cpp) ----------------------------------------------------------------------------------------------
  void select_load(vec::LoadOp load);
  void select_whole_load(vec::LoadOp load);
  void select_load_splat(vec::LoadSplatOp load);
  VReg load_bytes(mlir::Value ptr, int64_t offset, unsigned bytes);
  /// A lane of a register that holds a value which is the same in all its lanes.
  struct Lane {
    VReg reg = kNoReg;
    int64_t number = 0;
  };
  /// Where `value` is as one lane; nothing when it isn't, or fills a whole register anyway.
  std::optional<Lane> lane_of(mlir::Value value);

  //--- MachineSelector ------------------------------------------------------------------------------------------------
  const OperandRules* rules(std::string_view name) const override { return named_row(name); }
  Status select_op(mlir::Operation& op) override;
  void finish_ops() override;
  Status select_body(vec::LoopOp loop) override;
  VReg pointer(mlir::Value ptr) override { return materialise(address(ptr)); }
  void load_constant(VReg def, int32_t number, unsigned bits) override;
  void bump_pointers(vec::LoopOp loop, VReg counter, std::vector<std::pair<VReg, int64_t>>& bumps) override;

  const Aarch64Features& features_;
  llvm::DenseMap<mlir::Value, Address> addresses_;
  llvm::DenseMap<mlir::Value, Lane> lanes_;
  /// Bases that reach where an immediate does not, of the block that is selected and those around it.
  std::map<std::pair<VReg, int64_t>, VReg> far_bases_;
  /// Bumped pointers by loop, by what they start from: base and factor of the counter.
  std::map<std::tuple<mlir::Operation*, VReg, int64_t>, VReg> bumped_;
};

} // namespace cortiq::codegen::aarch64
