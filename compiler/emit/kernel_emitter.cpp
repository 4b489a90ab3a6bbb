#include "compiler/emit/kernel_emitter.h"

#include <atomic>
#include <mutex>
#include <thread>

#include "compiler/passes/KernelSpecs.h"

namespace cortiq::compiler {

std::vector<codegen::KernelSpec> declaredKernels(mlir::ModuleOp module) {
  std::vector<codegen::KernelSpec> specs;
  for (auto define : module.getOps<kernel::DefineOp>())
    specs.push_back(kernelSpec(define.getSpec()));
  return specs;
}

StatusOr<std::vector<KernelCode>> generateKernels(const std::vector<codegen::KernelSpec>& specs, KernelEmitter& emitter,
                                                  unsigned threads) {
  std::vector<KernelCode> kernels(specs.size());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status failure;
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < specs.size();) {
      StatusOr<KernelCode> code = emitter.emit(specs[i]);
      if (code.ok()) {
        kernels[i] = *std::move(code);
        continue;
      }
      std::lock_guard lock(mutex);
      if (failure.ok())
        failure = code.status().with_prefix("kernel " + codegen::kernel_name(specs[i]));
      next = specs.size();
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads && i < specs.size(); ++i)
    others.emplace_back(work);
  work();
  for (std::thread& thread : others)
    thread.join();
  if (!failure.ok())
    return failure;
  return kernels;
}

} // namespace cortiq::compiler
