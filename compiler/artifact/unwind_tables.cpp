#include "compiler/artifact/unwind_tables.h"

#include <cstring>

namespace cortiq::compiler {
namespace {

constexpr uint64_t kCieBytes = 24;
constexpr uint64_t kFdeBytes = 32;
constexpr uint8_t kPcRelative4 = 0x1b;   // DW_EH_PE_pcrel | DW_EH_PE_sdata4
constexpr uint8_t kUnsigned4 = 0x03;     // DW_EH_PE_udata4
constexpr uint8_t kDataRelative4 = 0x3b; // DW_EH_PE_datarel | DW_EH_PE_sdata4

class Bytes {
public:
  void u8(uint8_t value) { out_.push_back(value); }
  void u32(uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8)
      out_.push_back(static_cast<uint8_t>(value >> shift));
  }
  void raw(std::initializer_list<uint8_t> bytes) { out_.insert(out_.end(), bytes); }
  /// DW_CFA_nop is the zero byte.
  void nopsTo(uint64_t size) { out_.resize(size); }
  uint64_t size() const { return out_.size(); }
  std::vector<uint8_t> take() { return std::move(out_); }

private:
  std::vector<uint8_t> out_;
};

uint32_t distance(uint64_t to, uint64_t from) {
  return static_cast<uint32_t>(to - from);
}

} // namespace

uint64_t ehFrameBytes(uint64_t kernels) {
  return kCieBytes + kernels * kFdeBytes + 4;
}
uint64_t ehFrameHdrBytes(uint64_t kernels) {
  return 12 + kernels * 8;
}

std::vector<uint8_t> buildEhFrame(std::span<const KernelPlacement::Entry> kernels, uint64_t address, uint32_t machine) {
  const bool x86 = machine == kMachineX86_64;
  Bytes out;
  out.u32(kCieBytes - 4);
  out.u32(0); // marks a CIE
  out.u8(1);
  out.raw({'z', 'R', 0});
  out.u8(x86 ? 1 : 4);   // code alignment
  out.u8(0x78);          // data alignment -8
  out.u8(x86 ? 16 : 30); // return address: rip, x30
  out.u8(1);
  out.u8(kPcRelative4);
  if (x86)
    out.raw({0x0c, 7, 8, 0x90, 1}); // CFA = rsp + 8, return address at CFA - 8
  else
    out.raw({0x0c, 31, 0}); // CFA = sp
  out.nopsTo(kCieBytes);
  for (const KernelPlacement::Entry& kernel : kernels) {
    const uint64_t start = out.size();
    out.u32(kFdeBytes - 4);
    out.u32(distance(out.size(), 0)); // back to the CIE at offset 0
    out.u32(distance(kernel.offset, address + out.size()));
    out.u32(static_cast<uint32_t>(kernel.bytes));
    out.u8(0);
    if (x86) // after `push rbp`: CFA = rsp + 16, rbp at CFA - 16; after `mov rbp, rsp`: CFA counts from rbp
      out.raw({0x41, 0x0e, 0x10, 0x86, 0x02, 0x43, 0x0d, 0x06});
    else // after `stp x29, x30, [sp, #-16]!`: CFA = sp + 16, both saved; after `mov x29, sp`: CFA counts from x29
      out.raw({0x41, 0x0e, 0x10, 0x9d, 0x02, 0x9e, 0x01, 0x41, 0x0d, 0x1d});
    out.nopsTo(start + kFdeBytes);
  }
  out.u32(0);
  return out.take();
}

std::vector<uint8_t> buildEhFrameHdr(std::span<const KernelPlacement::Entry> kernels, uint64_t address,
                                     uint64_t ehFrameAddress) {
  Bytes out;
  out.raw({1, kPcRelative4, kUnsigned4, kDataRelative4});
  out.u32(distance(ehFrameAddress, address + out.size()));
  out.u32(static_cast<uint32_t>(kernels.size()));
  for (size_t i = 0; i < kernels.size(); ++i) {
    out.u32(distance(kernels[i].offset, address));
    out.u32(distance(ehFrameAddress + kCieBytes + i * kFdeBytes, address));
  }
  return out.take();
}

} // namespace cortiq::compiler
