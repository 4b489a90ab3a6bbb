#pragma once

// Compiled models on disk, so that a model file given to cortiq-run is compiled once.

#include <string>

#include "formats/status.h"
#include "runtime/cli/run_options.h"

namespace cortiq::tools {

/// An artifact to run; a temporary one is removed with the object.
class CachedArtifact {
public:
  CachedArtifact(std::string path, bool temporary) : path_(std::move(path)), temporary_(temporary) {}
  CachedArtifact(CachedArtifact&& other) noexcept;
  CachedArtifact& operator=(CachedArtifact&&) = delete;
  ~CachedArtifact();
  const std::string& path() const { return path_; }

private:
  std::string path_;
  bool temporary_;
};

/// The artifact of the model `options.file`, compiled now when the cache has none. A damaged entry is replaced; a cache
/// that cannot be used costs a note on stderr and a temporary file.
StatusOr<CachedArtifact> compile_into_cache(const runtime::cli::RunOptions& options);

} // namespace cortiq::tools
