#pragma once

// What the last step of both machines shares: instructions, loops, moves and constants in the order in which they
// become bytes. A machine's own emitter knows its assembler.

#include <cstdint>
#include <vector>

#include "codegen/machine/constant_pool.h"
#include "codegen/machine/machine_code.h"
#include "codegen/machine/machine_ir.h"
#include "codegen/machine/parallel_moves.h"
#include "codegen/machine/register_allocator.h"

namespace cortiq::codegen {

/// Of a kernel, and of its constants.
inline constexpr size_t kCodeAlignment = 64;
/// Innermost loops start where decoders or fetch windows start a line.
inline constexpr size_t kLoopAlignment = 32;

class MachineEmitter : protected MoveSink {
protected:
  MachineEmitter(const MachineFunction& function, const Allocation& allocation, const ConstantPool& pool)
      : function_(function), allocation_(allocation), pool_(pool) {}

  /// Emits all instructions.
  void emit_code();
  /// Emits the constants that were asked for behind the code, those of the strictest alignment first, so that vectors
  /// need no padding between them. `trap` is a byte of what is never run.
  void place_constants(uint8_t trap);
  /// Everything of the result but its bytes.
  MachineCode facts(size_t code_bytes);

  int number(VReg reg) const { return reg == kNoReg ? -1 : allocation_.assigned[reg]; }
  bool uses(RegClass reg_class, int number) const;
  /// Notes that a constant is asked for; whether it was the first time.
  bool ask_for_constant(int32_t number);

  //--- what a machine does --------------------------------------------------------------------------------------------
  virtual size_t offset() const = 0;
  /// Emits instruction `i`; returns how many of those behind it went with it.
  virtual size_t emit_op(size_t i) = 0;
  /// Compares a loop's counter with its limit; what follows leaves the flags.
  virtual void compare(const Instruction& instruction) = 0;
  virtual void skip_loop(uint32_t loop) = 0; ///< to its end, where the counter has reached the limit
  virtual void align_loop() = 0;
  virtual void begin_body(uint32_t loop) = 0;
  virtual void repeat_loop(uint32_t loop) = 0; ///< to its body, where the counter has not
  virtual void bind_end(uint32_t loop) = 0;
  virtual void pad(size_t alignment, uint8_t with) = 0;
  virtual void place_constant(int32_t number) = 0;

  const MachineFunction& function_;
  const Allocation& allocation_;
  const ConstantPool& pool_;
  std::vector<int32_t> slots_; ///< offset of each register's slot from the stack pointer, or -1
  uint32_t frame_bytes_ = 0;

private:
  void begin_loop(const Instruction& instruction);
  void end_loop(const Instruction& instruction);
  void emit_moves(const Instruction& instruction);
  Place place(VReg reg) const;

  std::vector<bool> innermost_; ///< by loop
  std::vector<CodeLoop> loops_;
  std::vector<size_t> open_loops_; ///< of `loops_`, those whose end is still to come
  std::vector<bool> asked_for_;    ///< by constant
};

} // namespace cortiq::codegen
