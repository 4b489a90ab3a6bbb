#pragma once

// Instruction selection: a vec.kernel becomes a MachineFunction on the rows of the x86 instruction table.

#include "codegen/machine/selector.h"
#include "codegen/x86/features.h"
#include "codegen/x86/instruction_rows.h"
#include <array>
#include <tuple>

namespace cortiq::codegen::x86 {

/// Up to this bound of its unsigned side, the pair sums of a byte product by any signed byte stay within i16.
inline constexpr uint64_t kShortDotBound = 128;

class Selector final : public MachineSelector {
public:
  Selector(vec::KernelOp kernel, const X86Features& features) : MachineSelector(kernel, 0), features_(features) {}

  /// Selects the whole kernel. After it, `function()` and `pool()` hold the result.
  Status run();

private:
  friend struct OpSelectors; // select_ops.cpp: one function an op

  //--- values and instructions ----------------------------------------------------------------------------------------
  /// Width an operation on `value` runs at.
  unsigned width_of(mlir::Value value) const { return std::max(128u, bits_of(value)); }
  const Row* row(std::string_view name) const { return named_row(name, features_); }
  /// An instruction on `operands`, of which at most one is a load that becomes its memory operand.
  void add_folding(mlir::Operation* op, const Row* row, unsigned bits, VReg def, mlir::ValueRange operands);
  VReg add_named(std::string_view name, unsigned bits, std::initializer_list<VReg> uses, int64_t imm = 0,
                 unsigned result_bits = 0);

  //--- addresses (addressing.cpp) -------------------------------------------------------------------------------------
  /// base + index * scale + disp, before the displacement is known to fit 32 bits.
  struct Address {
    VReg base = kNoReg, index = kNoReg;
    int32_t scale = 1;
    int64_t disp = 0;
  };
  Address address(mlir::Value ptr);
  MemRef memory(mlir::Value ptr, int64_t offset);
  MemRef memory(const Address& at);
  VReg materialise(const Address& at);
  VReg scaled(VReg index, int64_t scale);
  void select_ptr_offset(vec::PtrOffsetOp op);

  //--- memory operands (folding.cpp) ----------------------------------------------------------------------------------
  /// The load that becomes a memory operand of `user`, and which operand it is; computed once for each op.
  struct Fold {
    int operand = -1;
    mlir::Operation* load = nullptr;
  };
  Fold fold_of(mlir::Operation* user);
  bool is_folded(mlir::Operation* load);
  /// Operands of `user` that its selected instruction can read from memory.
  uint8_t memory_operands(mlir::Operation* user, bool& narrow) const;

  //--- MachineSelector ------------------------------------------------------------------------------------------------
  const OperandRules* rules(std::string_view name) const override { return row(name); }
  Status select_op(mlir::Operation& op) override;
  Status select_body(vec::LoopOp loop) override;
  VReg pointer(mlir::Value ptr) override { return materialise(address(ptr)); }
  void load_constant(VReg def, int32_t number, unsigned bits) override;
  void bump_pointers(vec::LoopOp loop, VReg counter, std::vector<std::pair<VReg, int64_t>>& bumps) override;

  //--- tests of bits (select_bits.cpp) --------------------------------------------------------------------------------
  /// Number of the mask register that says which words have one of `bits`; AVX-512 only. Tests are kept while there are
  /// registers for them, and forgotten where control flow joins.
  int bits_mask(VReg word, uint64_t bits, unsigned width);
  /// The register of a test, and whether it holds it already; else the caller makes it.
  std::pair<int, bool> mask_of(VReg word, uint64_t bits);
  Status select_negative(vec::SelectNegativeOp op);
  Status select_bits(vec::SelectBitsOp op);
  Status mul_bits(vec::MulBitsOp op);

  const X86Features& features_;
  llvm::DenseMap<mlir::Value, Address> addresses_;
  llvm::DenseMap<mlir::Operation*, Fold> folds_;
  /// Bumped pointers by loop, by what they start from: base, index and scale of the address, factor of the counter.
  using BumpKey = std::tuple<mlir::Operation*, VReg, VReg, int32_t, int64_t>;
  std::map<BumpKey, VReg> bumped_;
  struct BitTest {
    VReg word = kNoReg;
    uint64_t bits = 0;
  };
  static constexpr uint64_t kSignsOfBytes = 0;             ///< in place of bits: a mask of bytes
  static constexpr int kFirstTestMask = 3, kTestMasks = 5; ///< masks below are for single instructions
  std::array<BitTest, kTestMasks> tests_;                  ///< what the masks hold
  int next_test_ = 0;
};

} // namespace cortiq::codegen::x86
