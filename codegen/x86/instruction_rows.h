#pragma once

// The x86 instruction table: one row an instruction, with what the allocator must know of it and how it is written.

#include "codegen/machine/machine_ir.h"
#include "codegen/x86/assembler.h"
#include "codegen/x86/features.h"

namespace cortiq::codegen::x86 {

/// One instruction with its physical operands.
struct Encoding {
  Xbyak::CodeGenerator& c;
  unsigned bits;          ///< operation width of vector instructions, at least 128
  int result;             ///< register number, or -1
  int uses[kMaxOperands]; ///< register numbers; -1 for the memory operand and what isn't there
  int memory_operand;     ///< which use is `mem`, or -1
  Xbyak::Address mem;
  int64_t imm;

  Xbyak::Xmm vector(int number) const { return vector(number, bits); }
  static Xbyak::Xmm vector(int number, unsigned bits) {
    const auto kind = bits == 512 ? Xbyak::Operand::ZMM : bits == 256 ? Xbyak::Operand::YMM : Xbyak::Operand::XMM;
    return Xbyak::Xmm(kind, number);
  }
  Xbyak::Xmm d() const { return vector(result); }
  Xbyak::Xmm r(int use) const { return vector(uses[use]); }
  Xbyak::Reg64 gd() const { return Xbyak::Reg64(result); }
  Xbyak::Reg64 g(int use) const { return Xbyak::Reg64(uses[use]); }
  bool in_memory(int use) const { return memory_operand == use; }
};

struct Row : OperandRules {
  bool commutative = false; ///< operands 0 and 1 change places when 0 is in memory
  void (*emit)(const Encoding&) = nullptr;
};

/// An op on one lane type that is one instruction. `lane` is the result's lane type as MLIR prints it, or "" for any.
struct LaneRow {
  std::string_view op, lane;
  bool (*needs)(const X86Features&);
  Row row;
};

/// The row of a one-instruction op: the last one in the table whose needs are met, or null.
const Row* lane_row(std::string_view op, std::string_view lane, const X86Features& features);

/// The row of an instruction by its name: what expansions, moves and loop control are made of. The last one whose needs
/// are met; asking for a name that isn't there is a bug and ends in an assertion.
const Row* named_row(std::string_view name, const X86Features& features);

} // namespace cortiq::codegen::x86
