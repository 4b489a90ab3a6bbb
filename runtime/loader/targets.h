#pragma once

// The targets of an artifact: programs over the same weights, of which one is taken when it is loaded.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "formats/status.h"
#include "runtime/cpu/features.h"

namespace cortiq::runtime {

/// One target, its place inside the program section checked; what stands there is not.
struct ArtifactTarget {
  std::string name;
  std::vector<std::string> features;
  std::span<const uint8_t> program;
};

/// The targets that `manifest` lists, the plainest first; of an artifact of one, that one. `section` is the program
/// section, `machine` the ELF machine of the code. Fails with one sentence where the list contradicts itself, the
/// section or what is known of its targets.
StatusOr<std::vector<ArtifactTarget>> read_targets(const artifact::Manifest& manifest, std::span<const uint8_t> section,
                                                   uint32_t machine);

/// The program of a target; fails where the FlatBuffers verifier refuses it.
StatusOr<const artifact::Program*> read_program(const ArtifactTarget& target);

/// Whether a kernel of this name may be called by `target`'s program: its last word is not another target's.
bool may_call(std::string_view target, std::string_view kernel);

/// The names with commas and "and" between.
std::string name_targets(std::span<const ArtifactTarget> targets);

/// What decides whether a target can be run: the machine, and whether the system lets a process use its tiles.
struct TargetMachine {
  CpuState cpu = {};
  std::function<Status(std::span<const std::string> features)> permission = {};
  bool runs_all = false; ///< for tools that only look
};

/// This machine.
TargetMachine this_machine();

/// Whether `target` runs on `machine`; fails with a sentence that names what is missing.
Status can_run(const ArtifactTarget& target, const TargetMachine& machine);

struct TargetChoice {
  size_t index = 0;
  std::string why; ///< "asked for", or what better ones lack; empty where there was no choice
};

/// The last of `targets` that `machine` can run or, where `name` is not empty, the one of that name. Fails with one
/// sentence that says what the artifact holds and what the machine lacks.
StatusOr<TargetChoice> choose_target(std::span<const ArtifactTarget> targets, std::string_view name,
                                     const TargetMachine& machine);

} // namespace cortiq::runtime
