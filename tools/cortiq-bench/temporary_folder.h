#pragma once

// A place for files of one measurement.

#include <string>

#include "formats/status.h"

namespace cortiq::bench {

/// A folder in TMPDIR that goes away with the object, and all in it.
class TemporaryFolder {
public:
  static StatusOr<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

private:
  TemporaryFolder() = default;
  std::string path_;
};

} // namespace cortiq::bench
