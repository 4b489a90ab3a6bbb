#pragma once

// An artifact that is compiled for one measurement.

#include <string>
#include <vector>

#include "formats/status.h"

namespace cortiq::bench {

/// A temporary file that goes away with the object; a mapping of it lives on.
class CompiledArtifact {
public:
  /// Runs cortiq-compile with `arguments` and an output of its choice. What the compiler refuses it has said already:
  /// such a failure has no message.
  static StatusOr<CompiledArtifact> compile(std::vector<std::string> arguments);
  CompiledArtifact(CompiledArtifact&& other) noexcept;
  CompiledArtifact& operator=(CompiledArtifact&&) = delete;
  ~CompiledArtifact();
  const std::string& path() const { return path_; }

private:
  CompiledArtifact() = default;
  std::string path_;
};

} // namespace cortiq::bench
