#pragma once

#include <span>

#include "tools/cortiq-inspect/mode.h"

namespace cortiq::inspect {

extern const Mode kCodecsMode;
extern const Mode kDecodeMode;
extern const Mode kDetokenizeMode;
extern const Mode kDisasmMode;
extern const Mode kListMode;
extern const Mode kPathsMode;
extern const Mode kProvenanceMode;
extern const Mode kRenderMode;
extern const Mode kTensorMode;
extern const Mode kTokenizeMode;
extern const Mode kVerifyMode;

/// All modes, in the order of the help; the one without a flag comes first.
std::span<const Mode* const> modes();

} // namespace cortiq::inspect
