#pragma once

// Moves that happen at once, put into an order in which none overwrites what another still reads.

#include "codegen/machine/machine_ir.h"

namespace cortiq::codegen {

/// Where a value is: a register, a spill slot, or a constant of the pool (a source only).
struct Place {
  enum Kind : uint8_t { kRegister, kSlot, kConstant } kind = kRegister;
  int32_t number = -1;

  bool operator==(const Place&) const = default;
};

struct Move {
  Place to, from;
  unsigned bits = 0;
};

/// Receives the ordered moves; neither call may change the flags.
class MoveSink {
public:
  virtual ~MoveSink() = default;
  /// At most one of the two is a slot or constant.
  virtual void move(RegClass reg_class, const Place& to, const Place& from, unsigned bits) = 0;
  virtual void exchange(RegClass reg_class, int a, int b, unsigned bits) = 0;
};

/// Two free registers, needed (else -1) when a slot is among the places.
struct MoveScratch {
  int copy = -1; ///< between a slot or constant and a slot
  int hold = -1; ///< for the value that breaks a cycle
};

void resolve_parallel_moves(std::vector<Move> moves, MoveScratch scratch, RegClass reg_class, MoveSink& sink);

} // namespace cortiq::codegen
