#pragma once

// What a saved session says of its tokens, beside the state behind them.

#include <cstdint>
#include <string>
#include <vector>

namespace cortiq::runtime {

struct SavedSequence {
  std::vector<uint32_t> tokens;  ///< those that the session holds, and at most one that was chosen but has not run
  uint64_t draws = 0;            ///< random numbers that choosing them took
  std::string conversation = {}; ///< messages of a chat, as JSON; may be empty
  bool last_generated = false;   ///< the last of the tokens was chosen from logits; said of one that has not run
};

} // namespace cortiq::runtime
