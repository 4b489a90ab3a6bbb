#pragma once

#include "codegen/kernels/core.h"

namespace cortiq::codegen {

/// Whether the codec has kernels for activations with one scale a record of it.
bool has_wide_form(formats::CodecId codec);

Sums wide_core(CoreContext& c, Address group);

} // namespace cortiq::codegen
