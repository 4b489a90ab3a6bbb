#pragma once

// .eh_frame and .eh_frame_hdr for kernels that keep a frame pointer: what gdb, perf and libunwind need to walk through
// them (DWARF 5 section 6.4, LSB 5 core section 10.6).

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/artifact/writer.h"

namespace cortiq::compiler {

uint64_t ehFrameBytes(uint64_t kernels);
uint64_t ehFrameHdrBytes(uint64_t kernels);

/// One CIE and one FDE a kernel. `address` is where the table will stand.
std::vector<uint8_t> buildEhFrame(std::span<const KernelPlacement::Entry> kernels, uint64_t address, uint32_t machine);

/// The binary search table; `kernels` ascend by offset.
std::vector<uint8_t> buildEhFrameHdr(std::span<const KernelPlacement::Entry> kernels, uint64_t address,
                                     uint64_t ehFrameAddress);

} // namespace cortiq::compiler
