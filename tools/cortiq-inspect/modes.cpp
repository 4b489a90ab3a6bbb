#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {

std::span<const Mode* const> modes() {
  static constexpr const Mode* kModes[] = {
      &kListMode,       &kVerifyMode, &kTensorMode, &kDecodeMode, &kDisasmMode,     &kTokenizeMode,
      &kDetokenizeMode, &kRenderMode, &kCodecsMode, &kPathsMode,  &kProvenanceMode,
  };
  return kModes;
}

} // namespace cortiq::inspect
