#include "compiler/passes/KernelSpecs.h"

namespace cortiq::compiler {

namespace {

codegen::Arm armOf(kernel::Form act) {
  switch (act) {
  case kernel::Form::q8a:
    return codegen::Arm::kFast;
  case kernel::Form::q8a_bf16:
    return codegen::Arm::kBf16;
  default:
    return codegen::Arm::kExact;
  }
}

} // namespace

codegen::KernelSpec kernelSpec(kernel::SpecAttr spec) {
  llvm::StringRef codec = spec.getCodec();
  codegen::KernelSpec result{.codec = formats::find_codec({codec.data(), codec.size()})->id,
                             .layout = static_cast<formats::LayoutId>(spec.getLayout())};
  result.k = static_cast<uint64_t>(spec.getK());
  result.rows = static_cast<uint32_t>(spec.getRows());
  result.tokens = static_cast<uint32_t>(spec.getTokens());
  result.arm = armOf(spec.getAct());
  result.bias = spec.getBias();
  result.residual = spec.getResidual();
  result.isa = spec.getIsa().str();
  return result;
}

} // namespace cortiq::compiler
