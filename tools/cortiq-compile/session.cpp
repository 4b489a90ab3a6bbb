#include "tools/cortiq-compile/session.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <unistd.h>

#include "llvm/Support/raw_ostream.h"

#include "formats/artifact/artifact_signature.h"
#include "formats/atomic_file.h"
#include "formats/input_files.h"
#include "formats/quote.h"
#include "formats/standard_output.h"
#include "runtime/loader/load.h"
#include "tools/cortiq-compile/progress.h"

namespace cortiq::tools {

CompileSession::CompileSession(const CompileOptions& options)
    : options_(options),
      threads_(options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency())),
      // Modules are small and passes work on the whole of them: threads would only cost their start.
      context_(mlir::MLIRContext::Threading::DISABLED),
      handler_(&context_,
               [this](mlir::Diagnostic& diagnostic) {
                 if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && diagnostic_.empty())
                   diagnostic_ = diagnostic.str();
                 return mlir::success();
               }),
      start_(std::chrono::steady_clock::now()) {}

CompileSession::~CompileSession() {
  if (!options_.time_passes)
    return;
  double total = 0;
  for (auto [name, ms] : laps_)
    std::fprintf(stderr, "%9.1f ms  %s\n", ms, name), total += ms;
  std::fprintf(stderr, "%9.1f ms  in all\n", total);
}

StatusOr<std::vector<compiler::Target>> CompileSession::targets() const {
  CORTIQ_ASSIGN_OR_RETURN(std::vector<compiler::Target> all,
                          compiler::findTargets(options_.target, compiler::readHost()));
  // Beside a GPU the CPU runs single stages, on what both hold: its own 16 bits are left out.
  if (options_.half_prompts && !options_.vulkan && std::ranges::count_if(all, compiler::addBf16Tiles) == 0)
    std::fprintf(stderr, "cortiq-compile: note: no target here multiplies in 16 bits, --prompt-numerics=half changes "
                         "no product\n");
  return all;
}

StatusOr<compiler::Target> CompileSession::only_target(const std::string& what) const {
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<compiler::Target> all, targets());
  if (all.size() != 1)
    return invalid(what + " is for one target; name one with --target");
  return all.front();
}

Status CompileSession::run_passes(mlir::ModuleOp module, const std::function<void(mlir::OpPassManager&)>& add) {
  mlir::PassManager passes(&context_);
  if (options_.print_ir_after_all)
    passes.enableIRPrinting([](mlir::Pass*, mlir::Operation*) { return false; },
                            [](mlir::Pass*, mlir::Operation*) { return true; });
  if (options_.time_passes)
    passes.enableTiming();
  add(passes);
  diagnostic_.clear();
  if (mlir::succeeded(passes.run(module)))
    return {};
  return unsupported("the compiler cannot lower this model: " +
                     (diagnostic_.empty() ? std::string("a pass failed without a message") : diagnostic_));
}

void CompileSession::lap(const char* name) {
  const auto now = std::chrono::steady_clock::now();
  laps_.emplace_back(name, std::chrono::duration<double, std::milli>(now - start_).count());
  start_ = now;
}

Status CompileSession::write_text(const std::string& text) {
  if (!options_.output.empty() && options_.output != "-")
    return formats::write_file(options_.output, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return formats::flush_standard_output();
}

Status CompileSession::write_ir(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return write_text(text);
}

Status CompileSession::write_kernels(mlir::ModuleOp module, compiler::KernelEmitter& emitter) {
  std::string text;
  for (const codegen::KernelSpec& spec : compiler::declaredKernels(module)) {
    CORTIQ_ASSIGN_OR_RETURN(std::string kernel,
                            options_.emit == EmitKind::kVec ? emitter.vecText(spec) : emitter.asmText(spec));
    text += (text.empty() ? "" : "\n") + kernel;
  }
  return write_text(text);
}

Status CompileSession::write_artifact(std::span<const compiler::TargetProgram> programs,
                                      const compiler::ModelBytes& model, compiler::ArtifactFacts facts) {
  Progress progress("packing weights");
  compiler::WriteOptions write;
  write.threads = threads_;
  // Nothing gets its name that the runtime would refuse. The artifact may be for another machine than this one.
  if (options_.sign)
    CORTIQ_RETURN_IF_ERROR(formats::check_output(formats::artifact_signature_path(options_.output)));
  formats::Hash256 root{};
  write.verify = [&root, embedded = facts.embedWeights](const std::string& path) -> Status {
    CORTIQ_RETURN_IF_ERROR(runtime::check_artifact(path, {.check_features = false, .resolve = embedded}));
    // Before it has a name: what is signed is what was written, whatever stands under that name later.
    CORTIQ_ASSIGN_OR_RETURN(const runtime::MappedArtifact file, runtime::MappedArtifact::open(path));
    root = file.root();
    return {};
  };
  write.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
  CORTIQ_RETURN_IF_ERROR(compiler::emitArtifact(programs, model, std::move(facts), options_.output, write));
  if (!options_.sign)
    return {};
  CORTIQ_ASSIGN_OR_RETURN(const formats::ArtifactSignature signature, formats::sign_artifact(root, *options_.sign));
  return formats::write_artifact_signature(options_.output, signature)
      .with_prefix("the artifact was written, but not its signature");
}

void CompileSession::say_done() const {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(options_.output, error);
  if (error || !options_.cache_key.empty() || !isatty(STDERR_FILENO))
    return;
  double total = 0;
  for (auto [name, ms] : laps_)
    total += ms;
  std::fprintf(stderr, "%s: %.1f MiB in %.1f s\n", formats::quote(options_.output).c_str(),
               static_cast<double>(bytes) / 1048576, total / 1000);
}

std::string shaping_options(const CompileOptions& o) {
  std::string text = "--numerics=" + o.numerics + " --max-batch=" + std::to_string(o.max_batch);
  if (o.half_prompts)
    text += " --prompt-numerics=half";
  if (o.vulkan)
    text += " --target=vulkan," + o.target;
  if (o.gpu_experts != "all")
    text += " --gpu-experts=" + o.gpu_experts;
  if (o.gpu_range != 0)
    text += " --gpu-range=" + std::to_string(o.gpu_range);
  if (o.max_context != 0)
    text += " --max-context=" + std::to_string(o.max_context);
  if (!o.cache_key.empty())
    text += " --cache-key=" + o.cache_key;
  if (!o.task.empty())
    text += " --task=" + o.task;
  if (o.q4tp_ladder != "exact")
    text += " --q4tp-ladder=" + o.q4tp_ladder;
  if (o.path != "auto")
    text += " --path=" + o.path;
  if (o.path_memory != 0)
    text += " --path-memory=" + std::to_string(o.path_memory);
  if (o.gemv.empty())
    return text + " --weights=" + o.weights;
  return text + " --gemv=" + o.gemv + " --shape=" + o.shape + (o.layout.empty() ? "" : " --layout=" + o.layout);
}

} // namespace cortiq::tools
