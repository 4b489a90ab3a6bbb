#pragma once

// What instruction selectors share, whatever the machine: values in registers, constants, and counted loops in the
// shape that machine_ir.h states. A machine's own selector adds its instructions and its addresses.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/machine/constant_pool.h"
#include "codegen/machine/machine_ir.h"
#include "dialects/Vec/IR/VecDialect.h"
#include "formats/status.h"
#include "llvm/ADT/DenseMap.h"

namespace cortiq::codegen {

/// A vector's lane type as instruction tables name it: "i8" to "f32".
std::string_view lane_name(mlir::Value value);

class MachineSelector {
public:
  virtual ~MachineSelector() = default;

  MachineFunction& function() { return function_; }
  const ConstantPool& pool() const { return pool_; }
  /// Constant registers without a definition: every use reads the pool. The allocator starts by spilling them.
  const std::vector<VReg>& constants_from_pool() const { return constants_from_pool_; }

protected:
  /// Vectors narrower than `least_bits` take registers of that width.
  MachineSelector(vec::KernelOp kernel, unsigned least_bits) : kernel_(kernel), least_bits_(least_bits) {}

  //--- values ---------------------------------------------------------------------------------------------------------
  unsigned bits_of(mlir::Value value) const { return vec::getVectorBits(value.getType()); }
  VReg new_vector(mlir::Value like) {
    return function_.new_vreg(RegClass::kVector, std::max(least_bits_, bits_of(like)));
  }
  VReg new_scalar() { return function_.new_vreg(RegClass::kScalar, 64); }
  /// The register of a vector, index or pointer; materialises constants and addresses.
  VReg reg(mlir::Value value);
  /// A constant vector of the pool.
  VReg constant(std::vector<uint8_t> bytes);
  VReg splat_constant(uint64_t lane, unsigned lane_bytes, unsigned bits);
  /// The bytes of a constant vector, or nothing.
  std::optional<std::vector<uint8_t>> constant_bytes(mlir::Value value) const;
  std::optional<int64_t> index_constant(mlir::Value value) const;

  //--- instructions ---------------------------------------------------------------------------------------------------
  struct Built {
    const OperandRules* rules;
    unsigned bits = 128;
    VReg def = kNoReg;
    std::initializer_list<VReg> uses = {};
    int64_t imm = 0;
    MemRef mem = {};
    int8_t memory_operand = -1;
  };
  VReg add(const Built& built);

  //--- the kernel -----------------------------------------------------------------------------------------------------
  /// Selects everything behind the entry, whose register of arguments prefers the physical one named.
  Status select_kernel(int8_t argument_register);
  Status select_block(mlir::Block& block);
  Status select_loop(vec::LoopOp loop);

  //--- what a machine says of itself ----------------------------------------------------------------------------------
  /// The row of an instruction by its name. Every machine has entry, mov, mov_imm and add_imm.
  virtual const OperandRules* rules(std::string_view name) const = 0;
  virtual Status select_op(mlir::Operation& op) = 0;
  /// What follows the selection of all ops, before constants are placed.
  virtual void finish_ops() {}
  virtual Status select_body(vec::LoopOp loop) { return select_block(loop.getBlock()); }
  virtual VReg pointer(mlir::Value ptr) = 0;
  virtual void load_constant(VReg def, int32_t number, unsigned bits) = 0;
  /// Starts pointers that advance beside the loop's counter, and notes by how much each does.
  virtual void bump_pointers(vec::LoopOp loop, VReg counter, std::vector<std::pair<VReg, int64_t>>& bumps) = 0;

  vec::KernelOp kernel_;
  MachineFunction function_;
  ConstantPool pool_;
  llvm::DenseMap<mlir::Value, VReg> regs_;
  std::set<VReg> advances_; ///< registers that change at a loop's end: counters and bumped pointers

private:
  void define_carried(vec::LoopOp loop, uint32_t id, std::vector<VReg>& carried);
  VReg yielded(mlir::Value value);
  void place_constants();

  const unsigned least_bits_;
  std::map<std::pair<int32_t, unsigned>, VReg> constants_; ///< by number in the pool and bits
  std::vector<VReg> constants_from_pool_;
};

/// `value` without the casts that change only its type.
mlir::Value strip_bitcasts(mlir::Value value);

/// `ptr` without the constant offsets that an address carries as its displacement.
mlir::Value root_of(mlir::Value ptr);

} // namespace cortiq::codegen
