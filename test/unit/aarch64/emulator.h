#pragma once

// Calls AArch64 code on an x86 machine: a process under qemu's user emulation takes code and data through a pipe.

#include "codegen/machine/machine_code.h"
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cortiq::testing {

/// A piece of memory that emulated code sees.
struct Region {
  void* data;
  uint64_t bytes;
  bool writable = false; ///< comes back changed
};

/// A process on an emulated processor; started with the first call.
class Emulator {
public:
  /// `cpu` as qemu names it: "max", "cortex-a72", …
  explicit Emulator(std::string cpu) : cpu_(std::move(cpu)) {}
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  /// Why nothing can be emulated here, or nothing.
  static std::string missing();

  /// Calls `code` with `args`, whose first `pointers` words are pointers into regions or null. Returns what went wrong
  /// (the processor refused an instruction, a callee-saved register came back changed), or nothing.
  std::string call(const codegen::MachineCode& code, std::span<const uint64_t> args, size_t pointers,
                   std::span<const Region> regions);

private:
  std::string start();
  void stop();
  std::string exchange(const codegen::MachineCode& code, std::span<const uint64_t> args, size_t pointers,
                       std::span<const Region> regions);

  std::string cpu_;
  int process_ = -1, to_ = -1, from_ = -1;
};

} // namespace cortiq::testing
