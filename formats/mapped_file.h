#pragma once

// Read-only access to the bytes of one regular file.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/status.h"

namespace cortiq::formats {

/// A regular file mapped read-only, or read into memory where the file system refuses mapping. Moving it keeps the
/// address of its bytes, so views into it stay valid for as long as one owner lives.
class MappedFile {
public:
  /// Opens `path`, which may be any byte string. An empty file gives an empty view: its reader says what is missing.
  /// Fails in one sentence for a missing file, a directory, a device or pipe, and a file that cannot be read.
  static StatusOr<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&&) noexcept = default;
  MappedFile& operator=(MappedFile&&) noexcept = default;

  const std::string& path() const { return path_; }
  std::span<const uint8_t> bytes() const { return {bytes_.get(), size_}; }

private:
  struct Release {
    size_t mapped; ///< length of the mapping, 0 for memory from new[]
    Release() : mapped(0) {}
    explicit Release(size_t length) : mapped(length) {}
    void operator()(const uint8_t* bytes) const;
  };
  MappedFile() = default;

  std::string path_;
  std::unique_ptr<const uint8_t[], Release> bytes_;
  size_t size_ = 0;
};

} // namespace cortiq::formats
