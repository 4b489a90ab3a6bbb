#pragma once

// What an artifact says about where it comes from. Nothing in it depends on when, where or by how many threads it was
// made.

#include <cstdint>
#include <string>
#include <vector>

#include "formats/artifact/artifact_generated.h"

namespace cortiq::compiler {

/// A file that the artifact was made of.
struct SourceFile {
  std::string name; ///< without folder
  uint64_t bytes = 0;
  std::vector<uint8_t> hash; ///< BLAKE2b-256 of it; empty where nothing in the artifact depends on it
};

/// The commit that this compiler was built from, 40 digits, with "+" where files differed from it; "unknown" outside of
/// a repository.
std::string compilerCommit();

/// The provenance section: one JSON object, its keys in a fixed order.
std::string provenanceText(const artifact::ManifestT& manifest, const std::vector<SourceFile>& sources);

} // namespace cortiq::compiler
