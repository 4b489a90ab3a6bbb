#pragma once

// The rows of the table of lossless changes, one file a source codec.

#include "formats/encode/keep.h"

namespace cortiq::formats {

extern const Keeper kBF16Keeper;
extern const Keeper kF16Keeper;
extern const Keeper kF32Keeper;
extern const Keeper kIQ4NLKeeper;
extern const Keeper kMXFP4Keeper;
extern const Keeper kPTQ10LevelsKeeper;
extern const Keeper kPTQ10TernaryKeeper;
extern const Keeper kQ10Keeper;
extern const Keeper kQ20G128LevelsKeeper;
extern const Keeper kQ20G128TernaryKeeper;
extern const Keeper kQ20LevelsKeeper;
extern const Keeper kQ20TernaryKeeper;
extern const Keeper kQ40Keeper;
extern const Keeper kQ50Keeper;
extern const Keeper kQ80Keeper;
extern const Keeper kSTQ10LevelsKeeper;
extern const Keeper kSTQ10TernaryKeeper;
extern const Keeper kTQ10LevelsKeeper;
extern const Keeper kTQ10TernaryKeeper;
extern const Keeper kTQ20LevelsKeeper;
extern const Keeper kTQ20TernaryKeeper;

} // namespace cortiq::formats
