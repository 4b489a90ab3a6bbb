#pragma once

// A session in a file: what it holds behind its tokens, to go on from there in another process.
//
//   0    magic "CORTIQS\x01", version (u32), 0 (u32), bytes of the header (u64), BLAKE2b-256 of the 24 bytes before it
//        and of the header
//   56   the header, a FlatBuffer (saved_session.fbs)
//        padding to a multiple of 64
//        payload: of each layer and head every group of sixteen positions, keys then values, positions that are not
//        held zero; then the recurrent states
//        BLAKE2b-256 of the padding and the payload
//
// It is read as a stranger's file: nothing is used before its size, its hash and its fit to the session were checked.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/status.h"
#include "runtime/session/saved_sequence.h"
#include "runtime/session/session.h"

namespace cortiq::saved {
struct Header;
} // namespace cortiq::saved

namespace cortiq::runtime {

inline constexpr uint32_t kSavedSessionVersion = 1;

/// Writes `session`, whose position is all of `sequence.tokens` or all but the last, to `path`, which gets its name
/// only when all of it is on the disk. Fails for a session on a GPU.
Status save_session(const std::string& path, Session& session, const SavedSequence& sequence);

/// A saved session whose header was read and checked.
class SavedSession {
public:
  static StatusOr<SavedSession> open(const std::string& path);
  SavedSession(SavedSession&& other) noexcept;
  SavedSession& operator=(SavedSession&& other) noexcept;
  ~SavedSession();

  const SavedSequence& sequence() const { return sequence_; }
  uint64_t position() const;

  /// Makes `session` hold what was saved, in place of what it holds. Fails, naming the remedy, where it is of another
  /// artifact, target, cache type or overlay, or has too small a context; the session is then as before. Fails for a
  /// damaged payload; the session is then empty.
  Status restore(Session& session) const;

private:
  SavedSession() = default;
  const saved::Header& header() const;
  Status read(uint64_t file_bytes);
  Status check_fit(Session& session) const;
  Status read_payload(Session& session) const;

  std::string path_;
  int fd_ = -1;
  std::vector<uint8_t> header_bytes_;
  std::vector<uint64_t> turns_; ///< see SessionState
  SavedSequence sequence_;
};

} // namespace cortiq::runtime
