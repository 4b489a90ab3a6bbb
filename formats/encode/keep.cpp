#include "formats/encode/keep.h"

#include "formats/encode/keeper_rows.h"

namespace cortiq::formats {
namespace {

const Keeper* const kTable[] = {&kF32Keeper,
                                &kF16Keeper,
                                &kBF16Keeper,
                                &kQ40Keeper,
                                &kQ50Keeper,
                                &kQ80Keeper,
                                &kIQ4NLKeeper,
                                &kTQ10TernaryKeeper,
                                &kTQ10LevelsKeeper,
                                &kTQ20TernaryKeeper,
                                &kTQ20LevelsKeeper,
                                &kQ20TernaryKeeper,
                                &kQ20LevelsKeeper,
                                &kQ20G128TernaryKeeper,
                                &kQ20G128LevelsKeeper,
                                &kPTQ10TernaryKeeper,
                                &kPTQ10LevelsKeeper,
                                &kSTQ10TernaryKeeper,
                                &kSTQ10LevelsKeeper,
                                &kMXFP4Keeper,
                                &kQ10Keeper};

} // namespace

std::span<const Keeper* const> keeper_table() {
  return kTable;
}

} // namespace cortiq::formats
