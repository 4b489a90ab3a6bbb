#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cortiq::codegen {

/// A kernel's code and, behind it, the constants it reads relative to its own address. Position independent as one
/// piece that starts at a multiple of 64 bytes.
struct MachineCode {
  std::vector<uint8_t> bytes; ///< code and constants; a multiple of 64 bytes
  size_t code_bytes = 0;      ///< the part that is instructions
  uint32_t spills = 0;        ///< values that live in stack slots for want of registers, constants apart
  uint32_t frame_bytes = 0;   ///< stack below the saved registers
};

} // namespace cortiq::codegen
