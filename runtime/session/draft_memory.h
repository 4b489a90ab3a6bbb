#pragma once

// What a session knows of its drafts: for which positions the block that guesses has its keys and values, and of which
// tokens the trunk's stream still stands in the arena.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cortiq::runtime {

/// One run of the draft stages.
struct DraftRun {
  uint64_t first = 0;               ///< row of the arena with which it begins
  uint64_t count = 0;               ///< rows
  uint64_t position = 0;            ///< of row 0 in the block's own cache
  std::span<const uint32_t> follow; ///< the id behind each row's token, from row 0 on
};

/// The block's cache may begin later than the sequence: after a pause it starts anew, with positions of its own. Its
/// entry for a position depends on the token there and on the one behind it.
class DraftMemory {
public:
  /// The trunk has run `tokens` from `position` on; the stream of each stands in its row of the arena.
  void ran(uint64_t position, std::span<const uint32_t> tokens);
  /// The stream was overwritten.
  void lose_rows() { rows_.clear(); }
  void rewind(uint64_t position);

  /// What has to run for the cache to cover all rows, when `next` follows the last of them. Nothing when there are no
  /// rows. The caller then runs it and calls covered().
  std::optional<DraftRun> run(uint64_t position, uint32_t next);
  void covered();

private:
  uint64_t row_position_ = 0; ///< of row 0
  std::vector<uint32_t> rows_, follow_;
  uint64_t first_ = 0, end_ = 0; ///< positions that the cache covers
};

} // namespace cortiq::runtime
