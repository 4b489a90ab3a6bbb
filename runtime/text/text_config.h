#pragma once

// What a model says about its text beside the tokenizer itself.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cortiq::runtime::text {

struct TextConfig {
  std::optional<uint32_t> bos_id;
  std::vector<uint32_t> eos_ids; ///< ids that end generation, ascending; none: only the token limit ends it
  std::optional<uint32_t> pad_id;
  std::vector<uint32_t> suppress_ids;       ///< ids never to be sampled
  std::optional<std::string> chat_template; ///< absent: kDefaultChatTemplate

  bool operator==(const TextConfig&) const = default;
};

} // namespace cortiq::runtime::text
