#pragma once

// Runs one vec.kernel twice on equal memory, by the interpreter and as machine code, and shows where they differ.

#include "codegen/x86/x86.h"
#include "dialects/Vec/IR/VecDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cortiq::testing {

/// Pages with an unreadable one behind them: `data()` ends where reading stops.
class GuardedBuffer {
public:
  explicit GuardedBuffer(size_t bytes);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<uint8_t> bytes() const { return {data_, size_}; }

private:
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// The argument block of test kernels.
struct TestArgs {
  const uint8_t* in0; ///< offset 0
  const uint8_t* in1; ///< offset 8
  uint8_t* out;       ///< offset 16
  uint64_t count;     ///< offset 24
  uint64_t stride;    ///< offset 32
};

/// Whether this machine runs code for `target`: "" or what it lacks.
std::string missing_for(const std::string& target);

/// Parses a module of vec kernels; the first is the one that runs.
struct ParsedKernel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  vec::KernelOp kernel;
};
mlir::MLIRContext& test_context();
ParsedKernel parse_kernel(const std::string& text);

/// Calls machine code from memory that is readable and executable only. Returns "" or which callee-saved registers it
/// did not keep.
std::string call(const codegen::MachineCode& code, const void* args);

/// Compiles `kernel` for `target` with poisoned registers and runs it beside the interpreter on copies of the same
/// memory: in0, in1 as given, out filled with a pattern. Returns "" when `out` is equal afterwards, else what differs.
std::string compare_with_interpreter(vec::KernelOp kernel, const std::string& target, const GuardedBuffer& in0,
                                     const GuardedBuffer& in1, size_t out_bytes, uint64_t count, uint64_t stride);

} // namespace cortiq::testing
