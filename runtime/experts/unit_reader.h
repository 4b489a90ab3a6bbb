#pragma once

// Reads experts from the artifact's file into memory, many at a time, past the page cache where the file system can.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/status.h"

namespace cortiq::runtime {

/// Offsets, lengths and addresses of reads are multiples of this.
inline constexpr uint64_t kReadAlignment = 4096;

/// One read. The file may end behind `needed` bytes.
struct UnitRead {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t needed = 0; ///< of `bytes`, what has to arrive
  uint8_t* to = nullptr;
  uint32_t unit = 0; ///< given back when the read is done
};

class UnitReader {
public:
  /// Called from a thread of the reader, never from start(). The failure is one sentence that names the file.
  using Done = std::function<void(uint32_t unit, const Status& status)>;

  /// Waits for every read that was started.
  virtual ~UnitReader() = default;
  /// Begins a read; at most kMostReads may be under way. May be called from any thread, also from Done.
  virtual void start(const UnitRead& read) = 0;
  virtual const char* name() const = 0;

  static constexpr uint32_t kMostReads = 64;
};

/// Hashes of the part of a file that is read, one a leaf (formats/artifact/artifact_hash.h).
struct WeightHashes {
  uint64_t offset = 0, bytes = 0; ///< of the part; a multiple of kReadAlignment, and any
  std::vector<uint8_t> leaves;
  bool always = false; ///< whatever is read is held against them, not only after a change
};

enum class ReaderKind { kBest, kUring, kThreads };

/// A reader of `path`, which must be the file that begins with `first_page`. What is read from a file that was changed
/// since is held against `hashes`, or fails where there are none. io_uring where the kernel offers it, else threads.
StatusOr<std::unique_ptr<UnitReader>> open_unit_reader(const std::string& path, std::span<const uint8_t> first_page,
                                                       WeightHashes hashes, UnitReader::Done done,
                                                       ReaderKind kind = ReaderKind::kBest);

} // namespace cortiq::runtime
