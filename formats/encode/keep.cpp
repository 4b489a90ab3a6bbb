#include "formats/encode/keep.h"

#include <algorithm>

#include "formats/encode/keeper_rows.h"

namespace cortiq::formats {
namespace {

const Keeper* const kTable[] = {&kF32Keeper, &kF16Keeper,  &kBF16Keeper, &kQ40Keeper,   &kQ50Keeper,
                                &kQ80Keeper, &kTQ10Keeper, &kTQ20Keeper, &kMXFP4Keeper, &kQ10Keeper};

} // namespace

std::span<const Keeper* const> keeper_table() {
  return kTable;
}

const Keeper* find_keeper(CodecId from) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const Keeper* k) { return k->from == from; });
  return found == std::end(kTable) ? nullptr : *found;
}

} // namespace cortiq::formats
