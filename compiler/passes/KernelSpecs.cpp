#include "compiler/passes/KernelSpecs.h"

namespace cortiq::compiler {

codegen::KernelSpec kernelSpec(kernel::SpecAttr spec) {
  llvm::StringRef codec = spec.getCodec();
  codegen::KernelSpec result{.codec = formats::find_codec({codec.data(), codec.size()})->id,
                             .layout = static_cast<formats::LayoutId>(spec.getLayout())};
  result.k = static_cast<uint64_t>(spec.getK());
  result.rows = static_cast<uint32_t>(spec.getRows());
  result.tokens = static_cast<uint32_t>(spec.getTokens());
  result.arm = spec.getAct() == kernel::Form::q8a ? codegen::Arm::kFast : codegen::Arm::kExact;
  result.bias = spec.getBias();
  result.residual = spec.getResidual();
  result.isa = spec.getIsa().str();
  return result;
}

} // namespace cortiq::compiler
