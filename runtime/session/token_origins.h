#pragma once

// Whence the tokens of a session came. What runs again, after a rewind or on another device, is computed as it was.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace cortiq::runtime {

enum class Origin : uint8_t { kPrompt, kGenerated };

class TokenOrigins {
public:
  /// `count` tokens run from `position` on; what was noted behind them stays until it is noted anew.
  void note(uint64_t position, uint64_t count, Origin origin) {
    origins_.resize(std::max<uint64_t>(origins_.size(), position + count));
    std::fill_n(origins_.begin() + static_cast<std::ptrdiff_t>(position), count, origin);
  }

  /// Tokens of one origin.
  struct Run {
    Origin origin;
    uint64_t count;
  };
  /// Those from `position` on, at least one and at most `most`.
  Run run(uint64_t position, uint64_t most) const {
    const Origin origin = at(position);
    uint64_t count = 1;
    while (count < most && at(position + count) == origin)
      ++count;
    return {origin, count};
  }

  /// The positions before `end` at which the two take turns, ascending; a prompt's tokens come first.
  std::vector<uint64_t> turns(uint64_t end) const {
    std::vector<uint64_t> out;
    for (uint64_t i = 0; i < end; ++i)
      if (at(i) != (i == 0 ? Origin::kPrompt : at(i - 1)))
        out.push_back(i);
    return out;
  }
  /// What turns() was of `count` tokens; those behind them are left out.
  void adopt(std::span<const uint64_t> turns, uint64_t count) {
    origins_.assign(count, Origin::kPrompt);
    for (size_t turn = 0; turn < turns.size(); turn += 2) {
      const uint64_t end = std::min(count, turn + 1 < turns.size() ? turns[turn + 1] : count);
      if (turns[turn] < end)
        note(turns[turn], end - turns[turn], Origin::kGenerated);
    }
  }

private:
  Origin at(uint64_t position) const { return position < origins_.size() ? origins_[position] : Origin::kPrompt; }

  std::vector<Origin> origins_; ///< of each position's latest token
};

} // namespace cortiq::runtime
