#include "codegen/x86/emitter.h"

#include "codegen/machine/emitter.h"
#include "codegen/x86/instruction_rows.h"

#include <algorithm>
#include <map>

namespace cortiq::codegen::x86 {
namespace {

using Xbyak::Address;
using Xbyak::Label;
using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::RegExp;

/// Registers that a callee keeps, rbp apart.
constexpr int kCalleeSaved[] = {Operand::RBX, Operand::R12, Operand::R13, Operand::R14, Operand::R15};

class Emitter final : private MachineEmitter {
public:
  Emitter(const MachineFunction& function, const Allocation& allocation, const ConstantPool& pool,
          const X86Features& features, const X86Options& options, std::vector<uint8_t>& memory)
      : MachineEmitter(function, allocation, pool), c_(memory.size(), memory.data()), features_(features),
        options_(options), loop_starts_(function.loops), loop_ends_(function.loops) {}

  StatusOr<MachineCode> run(std::vector<uint8_t>& memory) {
    lay_out_frame();
    prologue();
    emit_code();
    epilogue();

    MachineCode result = facts(c_.getSize());
    place_constants(kTrap);
    if (Xbyak::GetError() != Xbyak::ERR_NONE) {
      const int error = Xbyak::GetError();
      Xbyak::ClearError();
      return internal_error(std::string("the x86 assembler refused an instruction: ") +
                            Xbyak::ConvertErrorToString(error));
    }
    result.bytes.assign(memory.data(), memory.data() + c_.getSize());
    return result;
  }

private:
  //--- frame
  //--------------------------------------------------------------------------------------------------------------
  /// Slots by size, largest first, so that each is aligned to its size from an aligned stack pointer.
  void lay_out_frame() {
    slots_.assign(function_.vregs.size(), -1);
    std::vector<VReg> spilled;
    for (VReg reg = 0; reg < function_.vregs.size(); ++reg)
      if (function_.vregs[reg].spilled && function_.vregs[reg].constant < 0)
        spilled.push_back(reg);
    std::sort(spilled.begin(), spilled.end(), [&](VReg a, VReg b) {
      return std::pair(-int{function_.vregs[a].bits}, a) < std::pair(-int{function_.vregs[b].bits}, b);
    });
    for (VReg reg : spilled) {
      slots_[reg] = static_cast<int32_t>(frame_bytes_);
      frame_bytes_ += function_.vregs[reg].reg_class == RegClass::kVector
                          ? std::max<uint32_t>(16, function_.vregs[reg].bits / 8)
                          : 8;
    }
    frame_bytes_ = (frame_bytes_ + kCodeAlignment - 1) / kCodeAlignment * kCodeAlignment;
    for (int reg : kCalleeSaved)
      if (uses(RegClass::kScalar, reg))
        saved_.push_back(reg);
  }

  void prologue() {
    c_.push(Reg64(Operand::RBP));
    c_.mov(Reg64(Operand::RBP), Reg64(Operand::RSP));
    for (int reg : saved_)
      c_.push(Reg64(reg));
    if (frame_bytes_ > 0) {
      c_.sub(Reg64(Operand::RSP), frame_bytes_);
      c_.and_(Reg64(Operand::RSP), -static_cast<int>(kCodeAlignment));
    }
    if (options_.poison)
      poison();
  }

  void poison() {
    const int vectors = features_.avx512 ? 32 : 16;
    for (int reg :
         {Operand::RAX, Operand::RCX, Operand::RDX, Operand::RSI, Operand::R8, Operand::R9, Operand::R10, Operand::R11})
      c_.mov(Reg64(reg), 0xAAAAAAAAAAAAAAAAull);
    c_.vmovq(Xbyak::Xmm(0), Reg64(Operand::RAX));
    if (features_.avx512)
      c_.vpbroadcastq(Xbyak::Zmm(0), Xbyak::Xmm(0));
    else
      c_.vpbroadcastq(Xbyak::Ymm(0), Xbyak::Xmm(0));
    for (int reg = 1; reg < vectors; ++reg)
      c_.vmovaps(Encoding::vector(reg, features_.max_vector_bits()), Encoding::vector(0, features_.max_vector_bits()));
  }

  void epilogue() {
    c_.vzeroupper();
    if (!saved_.empty() && frame_bytes_ > 0)
      c_.lea(Reg64(Operand::RSP), Xbyak::util::ptr[Reg64(Operand::RBP) - 8 * static_cast<int>(saved_.size())]);
    for (auto it = saved_.rbegin(); it != saved_.rend(); ++it)
      c_.pop(Reg64(*it));
    if (saved_.empty() && frame_bytes_ > 0)
      c_.mov(Reg64(Operand::RSP), Reg64(Operand::RBP));
    c_.pop(Reg64(Operand::RBP));
    c_.ret();
  }

  //--- operands
  //-----------------------------------------------------------------------------------------------------------
  Address slot(VReg reg) const { return Xbyak::util::ptr[Reg64(Operand::RSP) + slots_[reg]]; }

  Address pool_address(int32_t constant) {
    if (ask_for_constant(constant))
      constant_labels_.emplace(constant, Label());
    return Xbyak::util::ptr[Xbyak::util::rip + constant_labels_.at(constant)];
  }

  Address address(const MemRef& mem) {
    if (mem.constant >= 0)
      return pool_address(mem.constant);
    if (mem.slot != kNoReg)
      return slot(mem.slot);
    RegExp expression = Reg64(number(mem.base));
    if (mem.index != kNoReg)
      expression = expression + Reg64(number(mem.index)) * mem.scale;
    return Xbyak::util::ptr[expression + mem.disp];
  }

  //--- instructions
  //-------------------------------------------------------------------------------------------------------
  size_t emit_op(size_t i) override {
    const Instruction& instruction = function_.code[i];
    const Row& row = static_cast<const Row&>(*instruction.rules);
    Encoding e{.c = c_,
               .bits = std::max<unsigned>(128, instruction.bits),
               .result = number(instruction.def),
               .uses = {number(instruction.uses[0]), number(instruction.uses[1]), number(instruction.uses[2])},
               .memory_operand = instruction.memory_operand,
               .mem = instruction.mem.present() ? address(instruction.mem) : Address(0),
               .imm = instruction.imm};
    if (row.commutative && e.memory_operand == 0) {
      std::swap(e.uses[0], e.uses[1]);
      e.memory_operand = 1;
    }
    if (row.tied >= 0 && e.uses[row.tied] != e.result) {
      if (function_.vregs[instruction.def].reg_class == RegClass::kScalar)
        c_.mov(e.gd(), e.g(row.tied));
      else
        c_.vmovaps(e.d(), e.r(row.tied));
    }
    row.emit(e);
    return 0;
  }

  //--- loops ----------------------------------------------------------------------------------------------------------
  size_t offset() const override { return c_.getSize(); }
  void skip_loop(uint32_t loop) override { c_.jge(loop_ends_[loop], Xbyak::CodeGenerator::T_NEAR); }
  void align_loop() override { c_.nop((kLoopAlignment - c_.getSize() % kLoopAlignment) % kLoopAlignment); }
  void begin_body(uint32_t loop) override { c_.L(loop_starts_[loop]); }
  void repeat_loop(uint32_t loop) override { c_.jl(loop_starts_[loop], Xbyak::CodeGenerator::T_AUTO); }
  void bind_end(uint32_t loop) override { c_.L(loop_ends_[loop]); }

  void compare(const Instruction& instruction) override {
    const Reg64 counter(number(instruction.uses[0]));
    if (instruction.uses[1] == kNoReg)
      c_.cmp(counter, static_cast<uint32_t>(instruction.imm));
    else
      c_.cmp(counter, Reg64(number(instruction.uses[1])));
  }

  //--- moves
  //--------------------------------------------------------------------------------------------------------------
  void move(RegClass reg_class, const Place& to, const Place& from, unsigned bits) override {
    if (reg_class == RegClass::kScalar) {
      if (to.kind == Place::kSlot)
        c_.mov(slot(to.number), Reg64(from.number));
      else if (from.kind == Place::kSlot)
        c_.mov(Reg64(to.number), slot(from.number));
      else
        c_.mov(Reg64(to.number), Reg64(from.number));
      return;
    }
    const unsigned width = std::max(128u, bits);
    if (to.kind == Place::kSlot) {
      c_.vmovups(slot(to.number), Encoding::vector(from.number, width));
      return;
    }
    const Xbyak::Xmm target = Encoding::vector(to.number, width);
    if (from.kind == Place::kRegister)
      c_.vmovaps(target, Encoding::vector(from.number, width));
    else if (from.kind == Place::kSlot)
      c_.vmovups(target, slot(from.number));
    else if (bits < 128)
      c_.vmovq(target, pool_address(from.number));
    else
      c_.vmovups(target, pool_address(from.number));
  }

  void exchange(RegClass reg_class, int a, int b, unsigned bits) override {
    if (reg_class == RegClass::kScalar) {
      c_.xchg(Reg64(a), Reg64(b));
      return;
    }
    const unsigned width = std::max(128u, bits);
    const Xbyak::Xmm x = Encoding::vector(a, width), y = Encoding::vector(b, width);
    c_.vxorps(x, x, y);
    c_.vxorps(y, x, y);
    c_.vxorps(x, x, y);
  }

  //--- constants
  //----------------------------------------------------------------------------------------------------------
  static constexpr uint8_t kTrap = 0xCC; ///< int3

  void pad(size_t alignment, uint8_t with) override {
    while (c_.getSize() % alignment != 0)
      c_.db(with);
  }

  void place_constant(int32_t number) override {
    c_.L(constant_labels_.at(number));
    for (uint8_t byte : pool_.bytes(number))
      c_.db(byte);
  }

  Xbyak::CodeGenerator c_;
  const X86Features& features_;
  const X86Options& options_;
  std::vector<int> saved_;
  std::vector<Label> loop_starts_, loop_ends_;
  std::map<int32_t, Label> constant_labels_;
};

} // namespace

TargetRegisters target_registers(const X86Features& features) {
  TargetRegisters registers;
  // Caller-saved first; the low eight have the shorter encodings.
  for (int reg : {Operand::RAX, Operand::RCX, Operand::RDX, Operand::RSI, Operand::RDI, Operand::R8, Operand::R9,
                  Operand::R10, Operand::R11, Operand::RBX, Operand::R12, Operand::R13, Operand::R14, Operand::R15})
    registers.scalar.push_back(static_cast<int8_t>(reg));
  for (int reg = 0; reg < (features.avx512 ? 32 : 16); ++reg)
    registers.vector.push_back(static_cast<int8_t>(reg));
  registers.load[0] = named_row("mov_load", features);
  registers.load[1] = named_row("load", features);
  registers.store[0] = named_row("mov_store", features);
  registers.store[1] = named_row("store", features);
  return registers;
}

StatusOr<MachineCode> emit(const MachineFunction& function, const Allocation& allocation, const ConstantPool& pool,
                           const X86Features& features, const X86Options& options) {
  // No instruction has more than 15 bytes, and no row more than eight instructions; a move set has three a pair.
  size_t bound = 4096;
  for (const Instruction& instruction : function.code)
    bound += 15 * (8 + 3 * instruction.moves.size()) + kLoopAlignment;
  for (int32_t number = 0; number < pool.size(); ++number)
    bound += pool.bytes(number).size() + kCodeAlignment;
  std::vector<uint8_t> memory(bound);
  return Emitter(function, allocation, pool, features, options, memory).run(memory);
}

} // namespace cortiq::codegen::x86
