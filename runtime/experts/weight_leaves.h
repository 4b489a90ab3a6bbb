#pragma once

// The hashes of the weights that experts are read from, for when the file's times or size say that it was changed:
// what is read then is held against them. Nothing is hashed as long as the file is as it was.

#include <cstdint>
#include <ctime>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/experts/unit_reader.h"

namespace cortiq::runtime {

/// What tells a changed file.
struct FileStamp {
  uint64_t bytes = 0;
  timespec time{};

  bool operator==(const FileStamp& other) const {
    return bytes == other.bytes && time.tv_sec == other.time.tv_sec && time.tv_nsec == other.time.tv_nsec;
  }
};

/// Thread-safe.
class WeightLeaves {
public:
  explicit WeightLeaves(WeightHashes hashes) : hashes_(std::move(hashes)) {}

  /// Holds the leaves that `read` lies in, as `descriptor` gives them now, against their hashes, unless that was done
  /// since the file bears `stamp`. Bytes of `read` are then those that were hashed. False where they differ or cannot
  /// be read, and for bytes that have no hash.
  bool hold(int descriptor, const UnitRead& read, const FileStamp& stamp);

private:
  bool hold_leaf(int descriptor, const UnitRead& read, uint64_t leaf);

  WeightHashes hashes_;
  std::mutex mutex_;
  FileStamp stamp_;
  std::vector<bool> good_; ///< leaves that are as they should be since the file bears the stamp
};

} // namespace cortiq::runtime
