#pragma once

// The rows of the table of lossless changes, one file a source codec.

#include "formats/encode/keep.h"

namespace cortiq::formats {

extern const Keeper kBF16Keeper;
extern const Keeper kF16Keeper;
extern const Keeper kF32Keeper;
extern const Keeper kMXFP4Keeper;
extern const Keeper kQ10Keeper;
extern const Keeper kQ40Keeper;
extern const Keeper kQ50Keeper;
extern const Keeper kQ80Keeper;
extern const Keeper kTQ10Keeper;
extern const Keeper kTQ20Keeper;

} // namespace cortiq::formats
