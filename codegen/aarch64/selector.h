#pragma once

// Instruction selection: a vec.kernel becomes a MachineFunction on the rows of the AArch64 instruction table.
//
// Two things differ from a plain walk over the ops. A value that is the same in every lane and comes from memory
// (vec.load_splat) need not fill a vector: products take it as one lane of a register, so that up to four neighbours
// come with one load. And of loads that lie side by side the second follows the first at once, so that the emitter can
// make one instruction of both.

#include "codegen/aarch64/features.h"
#include "codegen/aarch64/instruction_rows.h"
#include "codegen/machine/constant_pool.h"
#include "codegen/machine/machine_ir.h"
#include "dialects/Vec/IR/VecDialect.h"
#include "formats/status.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace cortiq::codegen::aarch64 {

inline constexpr unsigned kVectorBits = 128;

/// A vector's lane type as the instruction table names it: "i8" to "f32".
std::string_view lane_name(mlir::Value value);

/// `value` without the casts that change only its type.
mlir::Value strip_bitcasts(mlir::Value value);

class Selector {
public:
  Selector(vec::KernelOp kernel, const Aarch64Features& features) : kernel_(kernel), features_(features) {}

  /// Selects the whole kernel. After it, `function()` and `pool()` hold the result.
  Status run();
  MachineFunction& function() { return function_; }
  const ConstantPool& pool() const { return pool_; }
  /// Constant registers without a definition: every use reads the pool. The allocator starts by spilling them.
  const std::vector<VReg>& constants_from_pool() const { return constants_from_pool_; }

private:
  friend struct OpSelectors; // select_ops.cpp: one function an op

  //--- values ---------------------------------------------------------------------------------------------------------
  unsigned bits_of(mlir::Value value) const { return vec::getVectorBits(value.getType()); }
  VReg new_vector() { return function_.new_vreg(RegClass::kVector, kVectorBits); }
  VReg new_scalar() { return function_.new_vreg(RegClass::kScalar, 64); }
  /// The register of a vector, index or pointer; materialises constants and addresses.
  VReg reg(mlir::Value value);
  /// A constant vector of the pool.
  VReg constant(std::vector<uint8_t> bytes);
  VReg splat_constant(uint64_t lane, unsigned lane_bytes);
  /// The bytes of a constant vector, or nothing.
  std::optional<std::vector<uint8_t>> constant_bytes(mlir::Value value) const;
  std::optional<int64_t> index_constant(mlir::Value value) const;

  //--- instructions ---------------------------------------------------------------------------------------------------
  struct Built {
    const OperandRules* rules;
    unsigned bits = kVectorBits;
    VReg def = kNoReg;
    std::initializer_list<VReg> uses = {};
    int64_t imm = 0;
    MemRef mem = {};
  };
  VReg add(const Built& built);
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
  void bump_pointers(vec::LoopOp loop, VReg counter, std::vector<std::pair<VReg, int64_t>>& bumps);

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

  //--- loops (select_loops.cpp) ---------------------------------------------------------------------------------------
  Status select_block(mlir::Block& block);
  Status select_loop(vec::LoopOp loop);
  void define_carried(vec::LoopOp loop, uint32_t id, std::vector<VReg>& carried);
  VReg yielded(mlir::Value value);

  void drop_unused();
  void place_constants();
  void load_constant(VReg def, int32_t number);
  Status select_op(mlir::Operation& op);

  vec::KernelOp kernel_;
  const Aarch64Features& features_;
  MachineFunction function_;
  ConstantPool pool_;
  llvm::DenseMap<mlir::Value, VReg> regs_;
  llvm::DenseMap<mlir::Value, Address> addresses_;
  llvm::DenseMap<mlir::Value, Lane> lanes_;
  std::map<int32_t, VReg> constants_;
  std::vector<VReg> constants_from_pool_;
  /// Bases that reach where an immediate does not, of the block that is selected and those around it.
  std::map<std::pair<VReg, int64_t>, VReg> far_bases_;
  /// Bumped pointers by loop, by what they start from: base and factor of the counter.
  std::map<std::tuple<mlir::Operation*, VReg, int64_t>, VReg> bumped_;
  std::set<VReg> advances_; ///< registers that change at a loop's end: counters and bumped pointers
};

} // namespace cortiq::codegen::aarch64
