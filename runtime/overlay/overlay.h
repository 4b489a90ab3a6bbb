#pragma once

// What is in force of a model's skills and masks. A state is made once, never changed, and read by steps through their
// context: a session takes one at the start of a step, so no step sees half a skill.

#include <map>
#include <memory>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "formats/overlay/selection.h"
#include "formats/status.h"
#include "runtime/executor/program.h"
#include "runtime/experts/memory_budget.h"
#include "runtime/loader/resolver.h"
#include "runtime/ops/op.h"

namespace cortiq::runtime {

struct OverlayState {
  OverlayState();
  const uint64_t number; ///< from 1, another for each that was ever made; addresses are used again
  formats::OverlaySelection selection;
  const formats::OverlayMask* mask = nullptr; ///< inside the model's catalog
  std::vector<const CallList*> chosen;        ///< by overlay point; null: the stage's own calls
  // Of a blend alone: its weights by index, and the calls that read them.
  std::map<uint32_t, std::vector<uint8_t>> mixed_weights;
  std::vector<CallList> mixed_calls;
  BudgetShare share;
};

/// The skills, masks and routing data of a manifest. Fails for sizes that do not fit each other.
StatusOr<formats::OverlayCatalog> read_overlay_catalog(const artifact::Manifest& manifest);

/// Resolves a call of a stage with its alternatives: its own calls go to `stage.calls`, the rest into a point.
Status resolve_call(const artifact::Call& call, const Resolver& resolver, ProgramFacts& facts, size_t skills,
                    ResolvedProgram& program, Stage& stage);

/// The same facts with no recurrent state taken: for calls that run in the place of others.
ProgramFacts unclaimed(const ProgramFacts& facts);

/// Numbers all calls, alternatives included, and finds the scratch that they need.
void number_calls(ResolvedProgram& program);

/// Resolves the one operation of `call`, with its mask and gate.
Status resolve_operation(const artifact::Call& call, const Resolver& resolver, ProgramFacts& facts, CallList& out);

/// The state for `selection`, which is one of `catalog`. Takes time and memory only for a blend, whose weights it
/// mixes: four bytes for every weight that one of its skills replaces. They come out of `budget`, where there is one.
StatusOr<std::shared_ptr<const OverlayState>> make_overlay_state(const ResolvedProgram& program,
                                                                 const Resolver& resolver, const ProgramFacts& facts,
                                                                 const formats::OverlayCatalog& catalog,
                                                                 const formats::OverlaySelection& selection,
                                                                 MemoryBudget* budget);

/// Sum of the shares of weight `index`, which is mixed at run time, in its own layout and with that one's padding.
StatusOr<std::vector<uint8_t>> mix_weight(const Resolver& resolver, uint32_t index,
                                          const formats::OverlaySelection& selection);

/// Sets those of a row's columns [first, first + count) to zero that the mask in force cuts; `x` is column `first`.
void cut_columns(const StepContext& step, const MaskBits& bits, float* x, uint64_t first, uint64_t count);

} // namespace cortiq::runtime
