#pragma once

// The file that experts are read from: the same one that was mapped, and unchanged, or at least what is read of it.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/status.h"
#include "runtime/experts/unit_reader.h"
#include "runtime/experts/weight_leaves.h"

namespace cortiq::runtime {

class UnitFile {
public:
  /// Opens `path` past the page cache where that works. Fails when it does not begin with `first_page`, whose hashes
  /// cover all that follows: the path was given to another file.
  static StatusOr<UnitFile> open(const std::string& path, std::span<const uint8_t> first_page, WeightHashes hashes);
  UnitFile(UnitFile&& other) noexcept;
  UnitFile& operator=(UnitFile&&) = delete;
  ~UnitFile();

  int descriptor() const { return fd_; }
  /// What came of a read that got `got` bytes in all and ended with `error` (an errno, or 0).
  Status verdict(const UnitRead& read, uint64_t got, int error) const;
  /// Where a read that ended early goes on: a place behind which it has nothing yet.
  static uint64_t resume_at(uint64_t got) { return got / kReadAlignment * kReadAlignment; }
  /// Lets go of what a buffered read left in the page cache.
  void forget(const UnitRead& read) const;

private:
  UnitFile() = default;

  int fd_ = -1;
  bool direct_ = false;
  FileStamp stamp_; ///< when it was opened
  std::unique_ptr<WeightLeaves> leaves_;
  std::string path_;
};

} // namespace cortiq::runtime
