#pragma once

// Hands the fuzzer's bytes to readers that take a path.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cortiq::fuzz {

/// A file in memory that readers open by its path and that goes away with the object.
class MemoryFile {
public:
  /// Ends the process when the system has no such file to give: that is no finding.
  explicit MemoryFile(std::span<const uint8_t> bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }

private:
  int fd_;
  std::string path_;
};

/// Ends the process with a report unless `holds`: for properties that no input may break.
void require(bool holds, const char* what);

/// Keeps a value alive that is read only to show that it can be read.
void consume(std::span<const uint8_t> bytes);

} // namespace cortiq::fuzz
