#include "compiler/frontend/mixers/Mixers.h"

namespace cortiq::compiler {

namespace {

struct Row {
  Mixer mixer;
  BuildMixer build;
};

constexpr Row kRows[] = {
    {Mixer::kAttention, buildAttention},
    {Mixer::kGatedDelta, buildGatedDelta},
    {Mixer::kKda, buildKda},
    {Mixer::kShortConv, buildShortConv},
    {Mixer::kVmfPhase, buildVmfPhase},
    {Mixer::kVmfPhaseDelta, buildVmfPhase},
    {Mixer::kLatentAttention, buildLatentAttention},
};

} // namespace

BuildMixer mixerBuilder(Mixer mixer) {
  for (const Row& row : kRows)
    if (row.mixer == mixer)
      return row.build;
  llvm_unreachable("every mixer has a row");
}

} // namespace cortiq::compiler
