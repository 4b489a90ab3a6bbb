#pragma once

// The pre-tokenizers that GGUF files name in tokenizer.ggml.pre.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cortiq::runtime::text {

/// One name's row.
struct GgufPreTokenizer {
  enum Flag : uint32_t {
    kIgnoreMerges = 1u << 0, ///< a piece that is an entry is taken whole
    kAddBos = 1u << 1,       ///< BOS by default
    kAddSep = 1u << 2,       ///< a separator at the end by default
    kRaw = 1u << 3,          ///< pieces are UTF-8 with U+2581 for spaces, not byte-level characters
    kNfc = 1u << 4,          ///< published models of this name normalize to NFC; GGUF has no field for it
  };
  std::string_view name;
  uint32_t flags;
  std::vector<std::string_view> expressions; ///< applied in order, each to the pieces the former left

  bool has(Flag flag) const { return (flags & flag) != 0; }
};

/// The row of `name`, or null for a name that is not known. "" stands for a file that names none.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);

/// Every known name, for tests and messages.
std::vector<std::string_view> gguf_pre_tokenizer_names();

} // namespace cortiq::runtime::text
