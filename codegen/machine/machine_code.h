#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cortiq::codegen {

/// Where a counted loop lies in a kernel's code, and how often it goes round.
struct CodeLoop {
  size_t begin = 0;        ///< offset of the body's first instruction
  size_t end = 0;          ///< offset behind the branch back
  uint64_t iterations = 0; ///< 0: only known when the kernel runs
  int64_t step = 0;        ///< what an iteration adds to the counter
  int64_t limit = -1;      ///< offset in the kernel's arguments of what it counts to from 0, or -1
};

/// A kernel's code and, behind it, the constants it reads relative to its own address. Position independent as one
/// piece that starts at a multiple of 64 bytes.
struct MachineCode {
  std::vector<uint8_t> bytes;  ///< code and constants; a multiple of 64 bytes
  size_t code_bytes = 0;       ///< the part that is instructions
  uint32_t spills = 0;         ///< values that live in stack slots for want of registers, constants apart
  uint32_t frame_bytes = 0;    ///< stack below the saved registers
  std::vector<CodeLoop> loops; ///< outer ones before those in them, else in the code's order
};

} // namespace cortiq::codegen
