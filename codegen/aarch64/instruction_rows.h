#pragma once

// The AArch64 instruction table: one row an instruction, with what the allocator must know of it and how it is written.

#include "codegen/aarch64/assembler.h"
#include "codegen/machine/machine_ir.h"
#include <string_view>

namespace cortiq::codegen::aarch64 {

namespace a64 = asmjit::a64;

/// One instruction with its physical operands.
struct Encoding {
  a64::Assembler& a;
  unsigned bits;          ///< bits that vector loads and stores move
  int result;             ///< register number, or -1
  int uses[kMaxOperands]; ///< register numbers, -1 for what isn't there
  a64::Mem mem;
  int64_t imm;
  a64::Mem room; ///< kRoomBytes of the frame, for gathers only

  a64::Vec d() const { return a64::v(static_cast<uint32_t>(result)); }
  a64::Vec v(int use) const { return a64::v(static_cast<uint32_t>(uses[use])); }
  a64::Gp gd() const { return a64::x(static_cast<uint32_t>(result)); }
  a64::Gp g(int use) const { return a64::x(static_cast<uint32_t>(uses[use])); }
};

/// A vector of the frame that an instruction may use while it runs.
inline constexpr uint32_t kRoomBytes = 16;

using Emitted = asmjit::Error;

struct Row : OperandRules {
  Emitted (*emit)(const Encoding&) = nullptr;
};

/// An op on one lane type that is one instruction. `lane` is the result's lane type as MLIR prints it, or "" for any.
struct LaneRow {
  std::string_view op, lane;
  Row row;
};

/// The row of a one-instruction op, or null.
const Row* lane_row(std::string_view op, std::string_view lane);

/// The row of an instruction by its name: what expansions, moves and loop control are made of. Asking for a name that
/// isn't there is a bug and ends in an assertion.
const Row* named_row(std::string_view name);

/// Scalar registers that the emitter keeps for addresses and immediates between two instructions.
inline constexpr uint32_t kScratchRegister = 16, kSecondScratchRegister = 17;

/// dst = value, in as many instructions as it takes.
Emitted move_immediate(a64::Assembler& a, const a64::Gp& dst, uint64_t value);

/// dst = src + value. Uses the second scratch register where no immediate form holds the value.
Emitted add_immediate(a64::Assembler& a, const a64::Gp& dst, const a64::Gp& src, int64_t value);

} // namespace cortiq::codegen::aarch64
