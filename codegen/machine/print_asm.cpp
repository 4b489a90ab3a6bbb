// Disassembly through LLVM's MC layer.

#include "codegen/machine/print_asm.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

namespace cortiq::codegen {
namespace {

/// The disassembler and what it needs to live.
class Disassembler {
public:
  explicit Disassembler(const AsmSyntax& syntax) {
    syntax.initialise();
    const llvm::Triple triple(syntax.triple);
    from_end_ = syntax.targets_from_end;
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget("", const_cast<llvm::Triple&>(triple), error);
    if (!target)
      return;
    registers_.reset(target->createMCRegInfo(triple.str()));
    asm_info_.reset(target->createMCAsmInfo(*registers_, triple.str(), llvm::MCTargetOptions()));
    instructions_.reset(target->createMCInstrInfo());
    subtarget_.reset(target->createMCSubtargetInfo(triple.str(), "", syntax.features));
    context_ = std::make_unique<llvm::MCContext>(triple, asm_info_.get(), registers_.get(), subtarget_.get());
    disassembler_.reset(target->createMCDisassembler(*subtarget_, *context_));
    printer_.reset(target->createMCInstPrinter(triple, syntax.variant, *asm_info_, *instructions_, *registers_));
    printer_->setPrintImmHex(true);
    printer_->setPrintBranchImmAsAddress(true);
  }

  bool usable() const { return printer_ != nullptr; }

  /// Prints the instruction at `offset` and returns its size; 0 where there is none.
  uint64_t print(llvm::ArrayRef<uint8_t> bytes, uint64_t offset, llvm::raw_ostream& out) const {
    llvm::MCInst instruction;
    uint64_t size = 0;
    if (disassembler_->getInstruction(instruction, size, bytes.drop_front(offset), offset, llvm::nulls()) !=
        llvm::MCDisassembler::Success)
      return 0;
    printer_->printInst(&instruction, offset + (from_end_ ? size : 0), "", *subtarget_, out);
    return size;
  }

private:
  bool from_end_ = false;
  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> asm_info_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
  std::unique_ptr<llvm::MCContext> context_;
  std::unique_ptr<llvm::MCDisassembler> disassembler_;
  std::unique_ptr<llvm::MCInstPrinter> printer_;
};

/// The comments that stand in front of the instruction at `offset`.
void print_loops(const MachineCode& code, uint64_t offset, llvm::raw_ostream& out) {
  for (size_t i = code.loops.size(); i-- > 0;) // inner ones end first
    if (code.loops[i].end == offset)
      out << "; end of loop " << i << '\n';
  for (size_t i = 0; i < code.loops.size(); ++i) {
    const CodeLoop& loop = code.loops[i];
    if (loop.begin != offset)
      continue;
    out << "; loop " << i << ": ";
    if (loop.iterations != 0)
      out << loop.iterations << " times, ";
    else if (loop.limit >= 0)
      out << "to args[" << loop.limit << "], ";
    out << "step " << loop.step << '\n';
  }
}

} // namespace

std::string print_asm(const MachineCode& code, const AsmSyntax& syntax) {
  // One a machine and thread: making it takes longer than a kernel's listing.
  thread_local std::map<const AsmSyntax*, Disassembler> disassemblers;
  const Disassembler& disassembler = disassemblers.try_emplace(&syntax, syntax).first->second;
  std::string text;
  llvm::raw_string_ostream out(text);
  if (!disassembler.usable())
    return "; this build of LLVM has no " + std::string(syntax.machine) + " disassembler\n";
  const llvm::ArrayRef<uint8_t> bytes(code.bytes.data(), code.code_bytes);
  for (uint64_t offset = 0; offset < code.code_bytes;) {
    print_loops(code, offset, out);
    std::string line;
    llvm::raw_string_ostream printed(line);
    uint64_t size = disassembler.print(bytes, offset, printed);
    if (size == 0) {
      line = "\t(bad)";
      size = syntax.smallest;
    }
    out << llvm::format("%6x: ", static_cast<unsigned>(offset))
        << llvm::left_justify(llvm::toHex(bytes.slice(offset, size), /*LowerCase=*/true), 22) << line << '\n';
    offset += size;
  }
  const size_t constants = (code.code_bytes + 63) / 64 * 64;
  for (size_t at = constants; at < code.bytes.size(); at += 32)
    out << llvm::format("%6x: ", static_cast<unsigned>(at)) << "constants "
        << llvm::toHex(llvm::ArrayRef(code.bytes).slice(at, std::min<size_t>(32, code.bytes.size() - at)), true)
        << '\n';
  return text;
}

} // namespace cortiq::codegen
