#pragma once

// The vocabulary of a GGUF file after checking: every entry with text, score and type, and the special ids.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/status.h"
#include "runtime/text/gguf_tokenizer.h"

namespace cortiq::runtime::text {

/// Ids that a kind has when the file names none; -1: none.
struct GgufKindDefaults {
  int64_t bos, eos, unk, sep, pad, mask;
  bool add_bos, add_eos, space_prefix;
};

struct GgufVocabulary {
  std::vector<std::string> texts; ///< unique; index = id
  std::vector<double> scores;
  std::vector<GgufTokenType> types; ///< with what files often say wrongly put right
  std::unordered_map<std::string_view, uint32_t> ids;
  std::optional<uint32_t> bos, eos, unk, sep, pad, cls, mask;
  std::vector<uint32_t> end_ids; ///< ascending
  bool add_bos = false, add_eos = false, add_sep = false, space_prefix = false;

  size_t size() const { return texts.size(); }
  bool is_special(uint32_t id) const {
    return types[id] == GgufTokenType::kControl || types[id] == GgufTokenType::kUnknown;
  }
  std::optional<uint32_t> find(std::string_view text) const;
};

/// Checks tokens, scores, types and ids. Faults that a file can be used with are added to `warnings`.
StatusOr<GgufVocabulary> read_gguf_vocabulary(const GgufTokenizerData& data, const GgufKindDefaults& defaults,
                                              std::vector<std::string>& warnings);

} // namespace cortiq::runtime::text
