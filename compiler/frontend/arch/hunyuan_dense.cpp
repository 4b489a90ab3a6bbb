// hunyuan-dense: norms on every query and key head, behind the rotation.

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder({.headNorms = HeadNorms::kPerHead}));
  reader.model().qkNormAfterRope = true;
  return {};
}

} // namespace

const Architecture kHunyuanDense = {"hunyuan-dense", describe};

} // namespace cortiq::compiler
