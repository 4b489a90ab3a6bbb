#pragma once

// Files that appear whole or not at all.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/status.h"

namespace cortiq::formats {

/// An output file under a temporary name beside its destination. commit() gives it its name; without it the
/// destructor removes it, so an interrupted program leaves nothing that looks whole (and nothing at all if it called
/// prepare_to_write()).
class AtomicFile {
public:
  /// Creates the temporary file in the folder of `path`; an existing `path` stays untouched until commit().
  static StatusOr<AtomicFile> create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status write(std::span<const uint8_t> bytes);
  Status write(std::string_view text);
  /// Appends zero bytes until size() is a multiple of `alignment`.
  Status pad_to(uint64_t alignment);
  /// Overwrites bytes that were written before; size() does not change.
  Status write_at(uint64_t offset, std::span<const uint8_t> bytes);
  /// Appends zero bytes until size() is `size`, which takes no room on most file systems; no effect when it is larger.
  Status extend_to(uint64_t size);
  /// The name until commit(), so that what was written can be read and checked before.
  const std::string& temporary_path() const { return temporary_; }
  /// Bytes appended so far.
  uint64_t size() const { return size_; }

  /// Flushes to the device, then renames. The object is spent afterwards.
  Status commit();

private:
  AtomicFile() = default;
  void discard();

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// Writes a whole file through an AtomicFile.
Status write_file(const std::string& path, std::span<const uint8_t> bytes);

/// Refuses an output that is the input itself, by whatever name: its rename would destroy what it was made from. An
/// empty `output` is none.
Status check_not_input(const std::string& input, const std::string& output);

} // namespace cortiq::formats
