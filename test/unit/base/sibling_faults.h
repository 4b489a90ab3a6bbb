#pragma once

// What may stand in the place of a model's second file instead of it.

#include <functional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "test/unit/base/test_files.h"

namespace cortiq::test {

struct SiblingFault {
  const char* what;
  std::function<int(const std::string& path)> put; ///< 0 when it is in place
  const char* reason;                              ///< words of the refusal; each reader has its own for an empty file
};

/// Everything that has to be refused in words, without blocking and without reading past it.
inline std::vector<SiblingFault> sibling_faults() {
  return {
      {"nothing", [](const std::string&) { return 0; }, "does not exist"},
      {"a folder", [](const std::string& path) { return mkdir(path.c_str(), 0700); }, "is a directory"},
      {"a pipe", [](const std::string& path) { return mkfifo(path.c_str(), 0600); }, "not a regular file"},
      {"a link to nothing", [](const std::string& path) { return symlink("nowhere", path.c_str()); }, "does not exist"},
      {"a link to itself", [](const std::string& path) { return symlink(path.c_str(), path.c_str()); },
       "cannot be opened"},
      {"a device", [](const std::string& path) { return symlink("/dev/zero", path.c_str()); }, "not a regular file"},
      {"an empty file", [](const std::string& path) { return write_bytes(path, {}), 0; }, ""},
  };
}

} // namespace cortiq::test
