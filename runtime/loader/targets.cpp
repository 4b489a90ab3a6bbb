#include "runtime/loader/targets.h"

#include <algorithm>

#include "formats/artifact/artifact_file.h"
#include "formats/artifact/target_needs.h"
#include "formats/checked_math.h"
#include "formats/quote.h"
#include "runtime/cpu/tile_permission.h"
#include "runtime/loader/verified_root.h"

namespace cortiq::runtime {
namespace {

using formats::quote;

constexpr size_t kMostTargets = 16;
constexpr size_t kMostFeatures = 64;
constexpr size_t kLongestName = 64;

using FeatureList = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

/// The features of a target, held against what its code is known to need.
StatusOr<std::vector<std::string>> read_features(std::string_view name, const FeatureList& list, uint32_t machine) {
  if (list.size() > kMostFeatures)
    return invalid("its target " + quote(name) + " names " + std::to_string(list.size()) + " CPU features");
  std::vector<std::string> out;
  for (const flatbuffers::String* feature : list)
    out.push_back(feature->str());
  const formats::TargetNeeds* needs = formats::find_target_needs(name);
  if (!needs)
    return out;
  if (needs->machine != machine)
    return invalid("its target " + quote(name) + " is one of another machine than its code");
  for (std::string_view feature : needs->features)
    if (std::ranges::find(out, feature) == out.end())
      return invalid("its target " + quote(name) + " does not name the CPU feature " + std::string(feature) +
                     ", which the code of such targets needs");
  return out;
}

StatusOr<ArtifactTarget> read_target(const artifact::Target& entry, std::span<const uint8_t> section, uint64_t end,
                                     uint32_t machine) {
  ArtifactTarget out;
  out.name = entry.name()->str();
  if (out.name.empty() || out.name.size() > kLongestName)
    return invalid("it has a target with a name of " + std::to_string(out.name.size()) + " bytes");
  CORTIQ_ASSIGN_OR_RETURN(out.features, read_features(out.name, *entry.features(), machine));
  if (entry.program_bytes() == 0 || entry.program_offset() % formats::kProgramAlignment != 0 ||
      entry.program_offset() < end ||
      !formats::range_fits(entry.program_offset(), entry.program_bytes(), section.size()))
    return invalid("the program of its target " + quote(out.name) + " lies outside its section or over another");
  out.program = section.subspan(entry.program_offset(), entry.program_bytes());
  return out;
}

/// What the manifest says for readers that know of one target only.
Status check_first(const artifact::Manifest& manifest, const artifact::Target& first) {
  const bool same = std::ranges::equal(
      *manifest.features(), *first.features(),
      [](const flatbuffers::String* a, const flatbuffers::String* b) { return a->string_view() == b->string_view(); });
  if (first.name()->string_view() != manifest.target()->string_view() || !same || first.program_offset() != 0)
    return invalid("its first target " + quote(first.name()->string_view()) + " is not the one of its manifest, " +
                   quote(manifest.target()->string_view()));
  return {};
}

/// "a: its code needs x, which …; b: …" of those that `machine` cannot run, in brackets.
std::string lacks(std::span<const ArtifactTarget> targets, const TargetMachine& machine) {
  std::string out;
  for (const ArtifactTarget& target : targets)
    if (const Status status = can_run(target, machine).with_prefix(formats::printable(target.name)); !status.ok())
      out += (out.empty() ? " (" : "; ") + status.message();
  return out.empty() ? out : out + ")";
}

} // namespace

StatusOr<std::vector<ArtifactTarget>> read_targets(const artifact::Manifest& manifest, std::span<const uint8_t> section,
                                                   uint32_t machine) {
  std::vector<ArtifactTarget> out;
  if (!manifest.targets() || manifest.targets()->size() == 0) {
    const std::string name = manifest.target()->str();
    CORTIQ_ASSIGN_OR_RETURN(auto features, read_features(name, *manifest.features(), machine));
    out.push_back({name, std::move(features), section});
    return out;
  }
  if (manifest.targets()->size() > kMostTargets)
    return invalid("it lists " + std::to_string(manifest.targets()->size()) + " targets, at most " +
                   std::to_string(kMostTargets) + " are possible");
  CORTIQ_RETURN_IF_ERROR(check_first(manifest, *manifest.targets()->Get(0)));
  uint64_t end = 0;
  for (const artifact::Target* entry : *manifest.targets()) {
    CORTIQ_ASSIGN_OR_RETURN(ArtifactTarget target, read_target(*entry, section, end, machine));
    if (std::ranges::find(out, target.name, &ArtifactTarget::name) != out.end())
      return invalid("it has two targets named " + quote(target.name));
    end = entry->program_offset() + entry->program_bytes();
    out.push_back(std::move(target));
  }
  return out;
}

StatusOr<const artifact::Program*> read_program(const ArtifactTarget& target) {
  return verified_root<artifact::Program>(target.program, "program");
}

bool may_call(std::string_view target, std::string_view kernel) {
  const std::string_view last = kernel.substr(kernel.rfind('_') + 1);
  return std::ranges::none_of(formats::target_needs(),
                              [&](const formats::TargetNeeds& row) { return row.word == last && row.name != target; });
}

std::string name_targets(std::span<const ArtifactTarget> targets) {
  std::string out;
  for (size_t i = 0; i < targets.size(); ++i)
    out += (i == 0 ? "" : i + 1 == targets.size() ? " and " : ", ") + formats::printable(targets[i].name);
  return out;
}

TargetMachine this_machine() {
  return {read_cpu_state(), request_tile_permission};
}

Status can_run(const ArtifactTarget& target, const TargetMachine& machine) {
  if (machine.runs_all)
    return {};
  Status status = check_features(target.features, machine.cpu);
  if (status.ok())
    status = machine.permission(target.features);
  return status;
}

StatusOr<TargetChoice> choose_target(std::span<const ArtifactTarget> targets, std::string_view name,
                                     const TargetMachine& machine) {
  const std::string holds = "it holds code for " + name_targets(targets);
  if (!name.empty()) {
    const auto found = std::ranges::find(targets, name, &ArtifactTarget::name);
    if (found == targets.end())
      return invalid(holds + ", not for " + quote(name) +
                     (name == "vulkan" ? ": --target chooses the CPU's code, --device the GPU" : ""));
    CORTIQ_RETURN_IF_ERROR(can_run(*found, machine).with_prefix(holds + ", and " + quote(name) + " cannot run here"));
    return TargetChoice{static_cast<size_t>(found - targets.begin()), "asked for, of " + name_targets(targets)};
  }
  if (targets.size() == 1) {
    CORTIQ_RETURN_IF_ERROR(can_run(targets[0], machine));
    return TargetChoice{};
  }
  for (size_t i = targets.size(); i-- > 0;)
    if (can_run(targets[i], machine).ok())
      return TargetChoice{i, (i + 1 == targets.size() ? "the best of " : "the best that runs here of ") +
                                 name_targets(targets) + lacks(targets.subspan(i + 1), machine)};
  return unsupported(holds + ", none of which runs here" + lacks(targets, machine));
}

} // namespace cortiq::runtime
