#pragma once

// From a mapped artifact to a resolved program.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/artifact/artifact_generated.h"
#include "formats/overlay/catalog.h"
#include "formats/signing/signer_key.h"
#include "formats/status.h"
#include "runtime/executor/program.h"
#include "runtime/experts/expert_store.h"
#include "runtime/experts/memory_budget.h"
#include "runtime/loader/hidden_rows.h"
#include "runtime/loader/mapped_artifact.h"
#include "runtime/loader/resolver.h"
#include "runtime/loader/targets.h"
#include "runtime/memory/placement.h"
#include "runtime/ops/op.h"

namespace cortiq::runtime {

/// Read-only memory for weights that are not used where the file is mapped: copies, and those of an artifact without.
class FilledWeights {
public:
  FilledWeights() = default;
  FilledWeights(uint64_t bytes, const Placement& placement); ///< zero, writable until protect()
  FilledWeights(FilledWeights&& other) noexcept;
  FilledWeights& operator=(FilledWeights&& other) noexcept;
  ~FilledWeights();
  std::span<uint8_t> bytes() const { return {base_, bytes_}; } ///< empty when the system refused
  void protect();

private:
  uint8_t* base_ = nullptr;
  uint64_t bytes_ = 0;
};

/// Everything that a model keeps of its artifact.
struct LoadedArtifact {
  MappedArtifact file;
  FilledWeights filled = {};
  const artifact::Manifest* manifest = nullptr; ///< inside `file`, verified
  std::vector<ArtifactTarget> targets = {};     ///< all that it holds code for
  TargetChoice taken = {};                      ///< the one of them that was loaded
  const artifact::Program* program_table = nullptr;
  ResolvedProgram program = {};
  HiddenRows hidden = {};
  // With a budget: who holds which part of it, and the experts that are in memory (null: the model has none).
  std::unique_ptr<ExpertStore> experts = nullptr;
  std::unique_ptr<MemoryBudget> memory = nullptr;
  // What a change of the overlay needs again.
  formats::OverlayCatalog overlay = {};
  Resolver resolver = {};
  ProgramFacts facts = {};
};

struct ArtifactLoadOptions {
  bool verify_weights = false;
  /// Whoever has to have signed it: nothing of it is used before its signature and every hash, those of the weights
  /// too, were found right.
  std::optional<formats::SignerKey> require_key = std::nullopt;
  std::optional<uint64_t> fill_seed = std::nullopt; ///< for artifacts without weights, and refused by others
  unsigned threads = 1;                             ///< for hashing and filling
  std::string target = {};    ///< the one to take, of an artifact of several; empty: the best that can run
  bool check_features = true; ///< off for tools that only look; without `target` the plainest is taken then
  uint64_t memory = 0;        ///< bytes that the process may hold; 0 = no budget
  Placement placement = {};
  bool resolve = true; ///< off: only the tables are verified, and `program` stays empty
};

/// Opens, verifies and resolves `path`. Nothing of the file is used before it was checked.
StatusOr<std::unique_ptr<LoadedArtifact>> load_artifact(const std::string& path, const ArtifactLoadOptions& options);

/// load_artifact() for each of the artifact's targets: what a check of the whole file means. Nothing stays loaded.
Status check_artifact(const std::string& path, ArtifactLoadOptions options);

} // namespace cortiq::runtime
