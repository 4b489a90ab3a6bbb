#include "test/unit/x86/kernel_harness.h"

#include "codegen/x86/assembler.h"
#include "dialects/Vec/Interp/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <cstring>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cortiq::testing {

GuardedBuffer::GuardedBuffer(size_t bytes) : size_(bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t usable = (bytes + page - 1) / page * page;
  map_bytes_ = usable + page;
  map_ = mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(static_cast<uint8_t*>(map_) + usable, page, PROT_NONE);
  data_ = static_cast<uint8_t*>(map_) + usable - bytes;
}

GuardedBuffer::~GuardedBuffer() {
  munmap(map_, map_bytes_);
}

namespace {

/// Whether there are tiles and the system lets this process use them.
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  static const bool may = __builtin_cpu_supports("amx-int8") && __builtin_cpu_supports("amx-tile") &&
                          syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return may;
}

} // namespace

std::string missing_for(const std::string& target) {
  const std::pair<std::string, bool> have[] = {
      {"avx2", __builtin_cpu_supports("avx2")},
      {"bmi2", __builtin_cpu_supports("bmi2")},
      {"fma", __builtin_cpu_supports("fma")},
      {"f16c", __builtin_cpu_supports("f16c")},
      {"avx_vnni", __builtin_cpu_supports("avxvnni")},
      {"avx512f", __builtin_cpu_supports("avx512f")},
      {"avx512bw", __builtin_cpu_supports("avx512bw")},
      {"avx512dq", __builtin_cpu_supports("avx512dq")},
      {"amx_tile", may_use_tiles()},
      {"amx_int8", may_use_tiles()},
      {"avx512vbmi", __builtin_cpu_supports("avx512vbmi")},
      {"avx512vl", __builtin_cpu_supports("avx512vl")},
      {"avx512_vnni", __builtin_cpu_supports("avx512vnni")},
  };
  std::string missing;
  for (const std::string& feature : codegen::x86_target_features(target))
    for (const auto& [name, present] : have)
      if (name == feature && !present)
        missing += (missing.empty() ? "" : ", ") + name;
  return missing;
}

mlir::MLIRContext& test_context() {
  static mlir::MLIRContext* context = [] {
    auto* made = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    made->loadDialect<vec::VecDialect>();
    return made;
  }();
  return *context;
}

ParsedKernel parse_kernel(const std::string& text) {
  ParsedKernel parsed;
  parsed.module = mlir::parseSourceString<mlir::ModuleOp>(text, &test_context());
  if (parsed.module)
    for (vec::KernelOp kernel : parsed.module->getOps<vec::KernelOp>()) {
      parsed.kernel = kernel;
      break;
    }
  return parsed;
}

namespace {

constexpr uint64_t kPattern = 0x5A5A5A5A12345678ull;

/// int trampoline(kernel, args): fills the callee-saved registers, calls, returns a bit for each that came back
/// changed.
std::vector<uint8_t> make_trampoline() {
  using Xbyak::Operand;
  using Xbyak::Reg64;
  const Operand::Code saved[] = {Operand::RBX, Operand::RBP, Operand::R12, Operand::R13, Operand::R14, Operand::R15};
  std::vector<uint8_t> memory(4096);
  Xbyak::CodeGenerator c(memory.size(), memory.data());
  const Reg64 rsp(Operand::RSP), rax(Operand::RAX), rcx(Operand::RCX), rdx(Operand::RDX);
  for (auto reg : saved)
    c.push(Reg64(reg));
  c.sub(rsp, 8);
  c.mov(rax, Reg64(Operand::RDI));
  c.mov(Reg64(Operand::RDI), Reg64(Operand::RSI));
  for (auto reg : saved)
    c.mov(Reg64(reg), kPattern + static_cast<uint64_t>(reg));
  c.call(rax);
  c.xor_(Xbyak::Reg32(Operand::EAX), Xbyak::Reg32(Operand::EAX));
  int bit = 0;
  for (auto reg : saved) {
    c.mov(rcx, kPattern + static_cast<uint64_t>(reg));
    c.mov(Xbyak::Reg32(Operand::EDX), 0);
    c.cmp(Reg64(reg), rcx);
    c.setne(rdx.cvt8());
    c.shl(Xbyak::Reg32(Operand::EDX), bit++);
    c.or_(Xbyak::Reg32(Operand::EAX), Xbyak::Reg32(Operand::EDX));
  }
  c.add(rsp, 8);
  for (size_t i = std::size(saved); i-- > 0;)
    c.pop(Reg64(saved[i]));
  c.ret();
  memory.resize(c.getSize());
  return memory;
}

/// A copy of code in memory that was writable while it was copied and is executable now.
class ExecutableCopy {
public:
  explicit ExecutableCopy(const std::vector<uint8_t>& bytes) : size_(bytes.size()) {
    map_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(map_, bytes.data(), size_);
    mprotect(map_, size_, PROT_READ | PROT_EXEC);
  }
  ~ExecutableCopy() { munmap(map_, size_); }
  void* entry() const { return map_; }

private:
  void* map_;
  size_t size_;
};

} // namespace

std::string call(const codegen::MachineCode& code, const void* args) {
  static const ExecutableCopy trampoline(make_trampoline());
  const ExecutableCopy kernel(code.bytes);
  const auto run = reinterpret_cast<int (*)(void*, const void*)>(trampoline.entry());
  const int changed = run(kernel.entry(), args);
  std::string result;
  const char* names[] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};
  for (int i = 0; i < 6; ++i)
    if (changed >> i & 1)
      result += std::string(result.empty() ? "" : ", ") + names[i];
  return result;
}

std::string compare_with_interpreter(vec::KernelOp kernel, const std::string& target, const GuardedBuffer& in0,
                                     const GuardedBuffer& in1, size_t out_bytes, uint64_t count, uint64_t stride) {
  const auto features = codegen::x86_target(target);
  if (!features.ok())
    return features.status().message();
  const auto code = codegen::emit_x86(kernel, *features, {.poison = true});
  if (!code.ok())
    return code.status().message();
  GuardedBuffer expected(out_bytes), got(out_bytes);
  std::memset(expected.data(), 0x77, out_bytes);
  std::memset(got.data(), 0x77, out_bytes);
  TestArgs args{in0.data(), in1.data(), expected.data(), count, stride};
  if (failed(vec::interpretKernel(kernel, &args)))
    return "the interpreter refused the kernel";
  args.out = got.data();
  if (const std::string changed = call(*code, &args); !changed.empty())
    return "callee-saved registers not kept: " + changed + "\n" + codegen::print_asm(*code);
  for (size_t i = 0; i < out_bytes; ++i)
    if (expected.data()[i] != got.data()[i]) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      stream << "byte " << i << " of the output is " << int{got.data()[i]} << ", the interpreter has "
             << int{expected.data()[i]} << "\n";
      kernel.print(stream);
      stream << "\n" << codegen::print_asm(*code);
      return text;
    }
  return "";
}

} // namespace cortiq::testing
