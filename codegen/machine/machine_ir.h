#pragma once

// What instruction selectors hand to the register allocator: a list of instructions on virtual registers, with
// counted loops marked by brackets. The allocator knows no instruction set; an instruction says what it must know.
//
// Loop shape, in list order:
//
//   moves        carried <- initial values     (the entry of the loop)
//   loop_begin   counter, limit                skips the loop when the counter starts at or past the limit
//     …          body; counter and bumped pointers advance last
//   loop_end     counter, limit, moves         compares, moves carried <- yielded values, all at once, and goes back to
//                                              the body while the counter is below the limit
//   moves        results <- carried

#include <cstdint>
#include <utility>
#include <vector>

namespace cortiq::codegen {

using VReg = uint32_t;
inline constexpr VReg kNoReg = ~VReg{0};

/// Two files of registers: addresses and counts, and vectors of every width.
enum class RegClass : uint8_t { kScalar, kVector };

/// A memory operand: base + index * scale + disp, a constant of the pool, or a spill slot.
struct MemRef {
  VReg base = kNoReg;
  VReg index = kNoReg;
  int32_t scale = 1;
  int32_t disp = 0;
  int32_t constant = -1; ///< number of a pool constant, or -1
  VReg slot = kNoReg;    ///< spilled register whose slot is meant, or kNoReg

  bool present() const { return base != kNoReg || constant >= 0 || slot != kNoReg; }
};

/// What the allocator must know of an instruction. A row of the target's instruction table starts with this.
struct OperandRules {
  const char* name = "";
  /// Bit i: operand i may be the instruction's memory operand, when that is as wide as the operand.
  uint8_t memory_operands = 0;
  /// The memory operand is as wide as the operand's type even below 128 bits (widening conversions).
  bool narrow_memory = false;
  /// Operand whose register the result has to share, or -1. The emitter copies when the operand lives on.
  int8_t tied = -1;
  /// Operands are read after the result is first written, so the result takes none of their registers.
  bool early_result = false;
};

enum class InstructionKind : uint8_t { kOp, kMoves, kLoopBegin, kLoopEnd };

inline constexpr int kMaxOperands = 3;

struct Instruction {
  InstructionKind kind = InstructionKind::kOp;
  const OperandRules* rules = nullptr;
  uint16_t bits = 0; ///< operation width of vector instructions
  VReg def = kNoReg;
  VReg uses[kMaxOperands] = {kNoReg, kNoReg, kNoReg}; ///< kNoReg also where `mem` stands for the operand
  int8_t memory_operand = -1;                         ///< which operand `mem` is, -1 when it is an address of its own
  MemRef mem;
  int64_t imm = 0;
  std::vector<std::pair<VReg, VReg>> moves;           ///< kMoves, kLoopEnd: destination, source; all happen at once
  VReg scratch[4] = {kNoReg, kNoReg, kNoReg, kNoReg}; ///< for `moves` between slots: two scalar, two vector registers
  uint32_t loop = 0;                                  ///< kLoopBegin, kLoopEnd: which loop
  bool runs_at_least_once = false;                    ///< kLoopBegin: no check before the first iteration
  uint64_t iterations = 0;                            ///< kLoopBegin: how many, 0 where only the run knows
  int64_t step = 0;                                   ///< kLoopBegin: what an iteration adds to the counter
  int64_t limit = -1;                                 ///< kLoopBegin: CodeLoop's
};

inline constexpr uint32_t kNoLoop = ~uint32_t{0};

struct VRegInfo {
  RegClass reg_class = RegClass::kVector;
  uint16_t bits = 0;             ///< bits held: 64 for scalars
  int32_t constant = -1;         ///< the pool constant it always holds, or -1: it can be read from there again
  uint32_t carried_by = kNoLoop; ///< the loop that carries it from one iteration to the next
  VReg hint = kNoReg;            ///< a register it would like to share
  int8_t fixed_hint = -1;        ///< a physical register it would like, or -1
  bool transient = false;        ///< made for a spill: lives for one instruction, is never spilled itself
  bool spilled = false;          ///< lives in a slot
};

struct MachineFunction {
  std::vector<Instruction> code;
  std::vector<VRegInfo> vregs;
  uint32_t loops = 0;

  VReg new_vreg(RegClass reg_class, unsigned bits) {
    VRegInfo info;
    info.reg_class = reg_class;
    info.bits = static_cast<uint16_t>(bits);
    vregs.push_back(info);
    return static_cast<VReg>(vregs.size() - 1);
  }
};

} // namespace cortiq::codegen
