#pragma once

// The artifact while it is being written: sized at once, filled in place through a mapping, named at the end.

#include <cstdint>
#include <span>
#include <string>

#include "formats/status.h"

namespace cortiq::compiler {

/// A file without a name (where the file system has such) or with a temporary one, in the folder of its destination.
/// Until commit() nothing under the destination's name changes; the destructor leaves nothing behind.
class OutputFile {
public:
  /// Creates the file with `bytes` bytes reserved on the device, so that a full device is told here and not by a
  /// signal later.
  static StatusOr<OutputFile> create(const std::string& path, uint64_t bytes);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// [offset, offset + bytes) for writing, zero so far; `offset` is a multiple of the page. Unmapped with the object.
  StatusOr<std::span<uint8_t>> map(uint64_t offset, uint64_t bytes);
  Status writeAt(uint64_t offset, std::span<const uint8_t> bytes);
  Status flush();
  /// A path under which this process can open the file now.
  std::string readablePath() const;
  Status commit();

private:
  OutputFile() = default;

  std::string path_;
  std::string temporary_; // empty while the file has no name
  int fd_ = -1;
  uint8_t* mapping_ = nullptr;
  uint64_t mapped_ = 0;
};

} // namespace cortiq::compiler
