#include "codegen/aarch64/emitter.h"

#include "codegen/aarch64/instruction_rows.h"
#include "codegen/machine/emitter.h"

#include <algorithm>
#include <map>

namespace cortiq::codegen::aarch64 {
namespace {

using asmjit::Label;
using asmjit::arm::Mem;
using asmjit::arm::ptr;

/// Registers that a callee keeps, the frame pointer and the link register apart; of vectors the low half.
constexpr int kSavedScalarFirst = 19, kSavedScalarLast = 28;
constexpr int kSavedVectorFirst = 8, kSavedVectorLast = 15;
constexpr uint32_t kFramePointer = 29, kLinkRegister = 30;
constexpr int kVectors = 32;

class Emitter final : private MachineEmitter {
public:
  Emitter(const MachineFunction& function, const Allocation& allocation, const ConstantPool& pool,
          const Aarch64Options& options)
      : MachineEmitter(function, allocation, pool), options_(options) {}

  StatusOr<MachineCode> run() {
    note(holder_.init(asmjit::Environment(asmjit::Arch::kAArch64)));
    note(holder_.attach(&a_));
    lay_out_frame();
    prologue();
    for (uint32_t loop = 0; loop < function_.loops; ++loop) {
      loop_starts_.push_back(a_.newLabel());
      loop_ends_.push_back(a_.newLabel());
    }
    emit_code();
    epilogue();

    MachineCode result = facts(a_.offset());
    place_constants(0); // what traps
    if (error_ != asmjit::kErrorOk)
      return internal_error(std::string("the AArch64 assembler refused an instruction (") + failed_ +
                            "): " + asmjit::DebugUtils::errorAsString(error_));
    const asmjit::CodeBuffer& buffer = holder_.sectionById(0)->buffer();
    result.bytes.assign(buffer.data(), buffer.data() + buffer.size());
    return result;
  }

private:
  void note(Emitted error, const char* what = "setup") {
    if (error != asmjit::kErrorOk && error_ == asmjit::kErrorOk) {
      error_ = error;
      failed_ = what;
    }
  }

  //--- frame ----------------------------------------------------------------------------------------------------------
  void lay_out_frame() {
    slots_.assign(function_.vregs.size(), -1);
    // At the bottom, where every instruction reaches it.
    if (std::any_of(function_.code.begin(), function_.code.end(), needs_room))
      frame_bytes_ = kRoomBytes;
    for (RegClass reg_class : {RegClass::kVector, RegClass::kScalar})
      for (VReg reg = 0; reg < function_.vregs.size(); ++reg) {
        const VRegInfo& info = function_.vregs[reg];
        if (!info.spilled || info.constant >= 0 || info.reg_class != reg_class)
          continue;
        slots_[reg] = static_cast<int32_t>(frame_bytes_);
        frame_bytes_ += reg_class == RegClass::kVector ? 16 : 8;
      }
    frame_bytes_ = (frame_bytes_ + 15) / 16 * 16;
    for (int reg = kSavedScalarFirst; reg <= kSavedScalarLast; ++reg)
      if (uses(RegClass::kScalar, reg))
        saved_scalars_.push_back(reg);
    for (int reg = kSavedVectorFirst; reg <= kSavedVectorLast; ++reg)
      if (uses(RegClass::kVector, reg))
        saved_vectors_.push_back(reg);
    // Saved two at a time; one too many does no harm.
    if (saved_scalars_.size() % 2)
      saved_scalars_.push_back(static_cast<int>(kLinkRegister));
    if (saved_vectors_.size() % 2)
      saved_vectors_.push_back(0);
  }

  static bool needs_room(const Instruction& instruction) {
    static const OperandRules* const gather = named_row("gather");
    return instruction.rules == gather;
  }

  static a64::Gp x(int number) { return a64::x(static_cast<uint32_t>(number)); }
  static a64::Vec v(int number) { return a64::v(static_cast<uint32_t>(number)); }

  void prologue() {
    note(a_.stp(a64::x(kFramePointer), a64::x(kLinkRegister), asmjit::arm::ptr_pre(a64::sp, -16)));
    note(a_.mov(a64::x(kFramePointer), a64::sp));
    for (size_t i = 0; i < saved_scalars_.size(); i += 2)
      note(a_.stp(x(saved_scalars_[i]), x(saved_scalars_[i + 1]), asmjit::arm::ptr_pre(a64::sp, -16)));
    for (size_t i = 0; i < saved_vectors_.size(); i += 2)
      note(a_.stp(v(saved_vectors_[i]).d(), v(saved_vectors_[i + 1]).d(), asmjit::arm::ptr_pre(a64::sp, -16)));
    if (frame_bytes_ > 0)
      note(add_immediate(a_, a64::sp, a64::sp, -static_cast<int64_t>(frame_bytes_)));
    if (options_.poison)
      poison();
  }

  void poison() {
    constexpr uint64_t kGarbage = 0xAAAAAAAAAAAAAAAAull;
    for (int reg = 1; reg <= static_cast<int>(kSecondScratchRegister); ++reg)
      note(move_immediate(a_, x(reg), kGarbage));
    for (int reg = 0; reg < kVectors; ++reg)
      if (reg < kSavedVectorFirst || reg > kSavedVectorLast || uses(RegClass::kVector, reg))
        note(a_.movi(v(reg).b16(), 0xAA));
  }

  void epilogue() {
    if (frame_bytes_ > 0)
      note(add_immediate(a_, a64::sp, a64::sp, frame_bytes_));
    for (size_t i = saved_vectors_.size(); i > 0; i -= 2)
      note(a_.ldp(v(saved_vectors_[i - 2]).d(), v(saved_vectors_[i - 1]).d(), asmjit::arm::ptr_post(a64::sp, 16)));
    for (size_t i = saved_scalars_.size(); i > 0; i -= 2)
      note(a_.ldp(x(saved_scalars_[i - 2]), x(saved_scalars_[i - 1]), asmjit::arm::ptr_post(a64::sp, 16)));
    note(a_.ldp(a64::x(kFramePointer), a64::x(kLinkRegister), asmjit::arm::ptr_post(a64::sp, 16)));
    note(a_.ret(a64::x(kLinkRegister)));
  }

  //--- operands -------------------------------------------------------------------------------------------------------
  Mem slot(VReg reg) const { return ptr(a64::sp, slots_[reg]); }

  Mem pool_address(int32_t constant) {
    if (ask_for_constant(constant))
      constant_labels_.emplace(constant, a_.newLabel());
    return ptr(constant_labels_.at(constant));
  }

  Mem address(const MemRef& mem) {
    if (mem.constant >= 0)
      return pool_address(mem.constant);
    if (mem.slot != kNoReg)
      return slot(mem.slot);
    return ptr(x(number(mem.base)), mem.disp);
  }

  //--- instructions ---------------------------------------------------------------------------------------------------
  size_t emit_op(size_t i) override {
    if (i + 1 < function_.code.size() && emit_pair(function_.code[i], function_.code[i + 1]))
      return 1;
    emit_one(function_.code[i]);
    return 0;
  }

  /// Two loads or stores of neighbours in memory are one instruction.
  bool emit_pair(const Instruction& first, const Instruction& second) {
    static const OperandRules* const load = named_row("load");
    static const OperandRules* const store = named_row("store");
    if (first.rules != second.rules || (first.rules != load && first.rules != store) || first.bits != second.bits ||
        first.bits < 32 || first.mem.base == kNoReg || second.mem.base == kNoReg ||
        number(first.mem.base) != number(second.mem.base))
      return false;
    const int size = first.bits / 8;
    const bool ascending = second.mem.disp == first.mem.disp + size;
    const Instruction &low = ascending ? first : second, &high = ascending ? second : first;
    if (high.mem.disp != low.mem.disp + size || low.mem.disp % size != 0 || low.mem.disp < -64 * size ||
        low.mem.disp > 63 * size)
      return false;
    const bool loads = first.rules == load;
    const int a = number(loads ? low.def : low.uses[0]), b = number(loads ? high.def : high.uses[0]);
    if (a == b && loads)
      return false;
    const auto part = [&](int reg) {
      const a64::Vec whole = v(reg);
      return first.bits == 32 ? a64::Vec(whole.s()) : first.bits == 64 ? a64::Vec(whole.d()) : a64::Vec(whole.q());
    };
    const Mem at = ptr(x(number(low.mem.base)), low.mem.disp);
    note(loads ? a_.ldp(part(a), part(b), at) : a_.stp(part(a), part(b), at), "pair");
    return true;
  }

  void emit_one(const Instruction& instruction) {
    const Row& row = static_cast<const Row&>(*instruction.rules);
    const Encoding e{.a = a_,
                     .bits = instruction.bits,
                     .result = number(instruction.def),
                     .uses = {number(instruction.uses[0]), number(instruction.uses[1]), number(instruction.uses[2])},
                     .mem = instruction.mem.present() ? address(instruction.mem) : Mem(),
                     .imm = instruction.imm,
                     .room = ptr(a64::sp)};
    if (row.tied >= 0 && e.uses[row.tied] != e.result) {
      if (function_.vregs[instruction.def].reg_class == RegClass::kScalar)
        note(a_.mov(e.gd(), e.g(row.tied)));
      else
        note(a_.mov(e.d().b16(), e.v(row.tied).b16()));
    }
    note(row.emit(e), row.name);
  }

  //--- loops ----------------------------------------------------------------------------------------------------------
  size_t offset() const override { return a_.offset(); }
  void skip_loop(uint32_t loop) override { note(a_.b_ge(loop_ends_[loop])); }
  void align_loop() override {
    while (a_.offset() % kLoopAlignment != 0)
      note(a_.nop());
  }
  void begin_body(uint32_t loop) override { note(a_.bind(loop_starts_[loop])); }
  void repeat_loop(uint32_t loop) override { note(a_.b_lt(loop_starts_[loop]), "loop"); }
  void bind_end(uint32_t loop) override { note(a_.bind(loop_ends_[loop])); }

  void compare(const Instruction& instruction) override {
    constexpr int64_t kImmediate = 0xfff;
    const a64::Gp counter = x(number(instruction.uses[0]));
    if (instruction.uses[1] != kNoReg) {
      note(a_.cmp(counter, x(number(instruction.uses[1]))));
    } else if (instruction.imm >= 0 && instruction.imm <= kImmediate) {
      note(a_.cmp(counter, instruction.imm));
    } else {
      const a64::Gp limit = a64::x(kScratchRegister);
      note(move_immediate(a_, limit, static_cast<uint64_t>(instruction.imm)));
      note(a_.cmp(counter, limit));
    }
  }

  //--- moves ----------------------------------------------------------------------------------------------------------
  void move(RegClass reg_class, const Place& to, const Place& from, unsigned) override {
    const bool is_scalar = reg_class == RegClass::kScalar;
    if (to.kind == Place::kSlot) {
      const Mem at = slot(static_cast<VReg>(to.number));
      note(is_scalar ? a_.str(x(from.number), at) : a_.str(v(from.number).q(), at));
    } else if (from.kind == Place::kRegister) {
      note(is_scalar ? a_.mov(x(to.number), x(from.number)) : a_.mov(v(to.number).b16(), v(from.number).b16()));
    } else {
      const Mem at = from.kind == Place::kSlot ? slot(static_cast<VReg>(from.number)) : pool_address(from.number);
      note(is_scalar ? a_.ldr(x(to.number), at) : a_.ldr(v(to.number).q(), at));
    }
  }

  void exchange(RegClass reg_class, int first, int second, unsigned) override {
    for (int step = 0; step < 3; ++step) {
      const int to = step == 1 ? second : first;
      if (reg_class == RegClass::kScalar)
        note(a_.eor(x(to), x(first), x(second)));
      else
        note(a_.eor(v(to).b16(), v(first).b16(), v(second).b16()));
    }
  }

  //--- constants ------------------------------------------------------------------------------------------------------
  void pad(size_t alignment, uint8_t with) override {
    while (a_.offset() % alignment != 0)
      note(a_.embed(&with, 1));
  }

  void place_constant(int32_t number) override {
    note(a_.bind(constant_labels_.at(number)), "constant");
    note(a_.embed(pool_.bytes(number).data(), pool_.bytes(number).size()));
  }

  asmjit::CodeHolder holder_;
  a64::Assembler a_;
  const Aarch64Options& options_;
  Emitted error_ = asmjit::kErrorOk;
  const char* failed_ = "";
  std::vector<int> saved_scalars_, saved_vectors_;
  std::vector<Label> loop_starts_, loop_ends_;
  std::map<int32_t, Label> constant_labels_;
};

} // namespace

TargetRegisters target_registers() {
  TargetRegisters registers;
  // Caller-saved first. x16 and x17 are the emitter's, x18 is the platform's.
  for (int reg = 0; reg < static_cast<int>(kScratchRegister); ++reg)
    registers.scalar.push_back(static_cast<int8_t>(reg));
  for (int reg = kSavedScalarFirst; reg <= kSavedScalarLast; ++reg)
    registers.scalar.push_back(static_cast<int8_t>(reg));
  for (int reg = 0; reg < kSavedVectorFirst; ++reg)
    registers.vector.push_back(static_cast<int8_t>(reg));
  for (int reg = kSavedVectorLast + 1; reg < kVectors; ++reg)
    registers.vector.push_back(static_cast<int8_t>(reg));
  for (int reg = kSavedVectorFirst; reg <= kSavedVectorLast; ++reg)
    registers.vector.push_back(static_cast<int8_t>(reg));
  registers.load[0] = named_row("ldr");
  registers.load[1] = named_row("fill");
  registers.store[0] = named_row("str");
  registers.store[1] = named_row("spill");
  return registers;
}

StatusOr<MachineCode> emit(const MachineFunction& function, const Allocation& allocation, const ConstantPool& pool,
                           const Aarch64Options& options) {
  return Emitter(function, allocation, pool, options).run();
}

} // namespace cortiq::codegen::aarch64
