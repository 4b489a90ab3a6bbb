#pragma once

// What both kinds of compilation share: the context with its diagnostics, the steps' times, and the output.

#include <chrono>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include "compiler/emit/emit_artifact.h"
#include "compiler/target/target_table.h"
#include "tools/cortiq-compile/options.h"

namespace cortiq::tools {

class CompileSession {
public:
  explicit CompileSession(const CompileOptions& options);
  ~CompileSession(); ///< prints the times where they were asked for

  mlir::MLIRContext& context() { return context_; }
  unsigned threads() const { return threads_; }

  /// The targets that the options name, the plainest first; `native` asks this machine.
  StatusOr<std::vector<compiler::Target>> targets() const;
  /// The same where only one will do: `what` says for what.
  StatusOr<compiler::Target> only_target(const std::string& what) const;

  /// Runs the passes that `add` adds. A failure carries the first diagnostic as one sentence.
  Status run_passes(mlir::ModuleOp module, const std::function<void(mlir::OpPassManager&)>& add);

  /// Ends the step that began with the previous call (or the start) under `name`.
  void lap(const char* name);
  /// One line on a terminal: the file, its size, and the time of all steps. Whoever compiles into a cache asks for
  /// none.
  void say_done() const;

  /// Writes the text of --emit=cmf and --emit=kernel.
  Status write_ir(mlir::ModuleOp module);
  /// Writes the text of --emit=vec and --emit=asm.
  Status write_kernels(mlir::ModuleOp module, compiler::KernelEmitter& emitter);
  /// Writes the artifact.
  Status write_artifact(std::span<const compiler::TargetProgram> programs, const compiler::ModelBytes& model,
                        compiler::ArtifactFacts facts);

private:
  Status write_text(const std::string& text);

  const CompileOptions& options_;
  unsigned threads_;
  mlir::MLIRContext context_;
  std::string diagnostic_; // the first error since the last run_passes()
  mlir::ScopedDiagnosticHandler handler_;
  std::chrono::steady_clock::time_point start_;
  std::vector<std::pair<const char*, double>> laps_; // name, milliseconds
};

/// What the artifact remembers of the options that shaped it.
std::string shaping_options(const CompileOptions& options);

} // namespace cortiq::tools
