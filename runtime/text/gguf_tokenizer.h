#pragma once

// A GGUF file's tokenizer metadata in the form of a tokenizer.json.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/status.h"
#include "runtime/text/text_config.h"

namespace cortiq::runtime::text {

/// The metadata under tokenizer.*, as the file has it. Views live as long as the file.
struct GgufTokenizerData {
  std::string_view model;              ///< tokenizer.ggml.model, the kind
  std::optional<std::string_view> pre; ///< tokenizer.ggml.pre
  std::string_view general_name;
  std::vector<std::string_view> tokens;
  std::optional<std::vector<double>> scores;
  std::optional<std::vector<int64_t>> token_types;
  std::optional<std::vector<std::string_view>> merges;
  std::optional<uint64_t> bos, eos, unk, sep, pad, cls, mask, eot, eom;
  std::vector<uint64_t> fim_stop_ids; ///< the pad, rep and sep ids of fill-in-the-middle, which end generation
  std::optional<bool> add_bos, add_eos, add_sep, add_space_prefix;
  bool remove_extra_whitespaces = false;
  std::vector<uint8_t> precompiled_charsmap;
  bool lowercase = true;
  std::optional<bool> strip_accents;
  std::vector<int64_t> suppress_tokens;
  std::optional<std::string_view> huggingface_json; ///< a whole tokenizer.json
  std::optional<std::string_view> chat_template;
};

struct ConvertedTokenizer {
  std::string tokenizer_json;
  TextConfig config;
  std::vector<std::string> warnings; ///< one sentence each: what the file leaves open or says wrongly
};

/// Token types of GGUF.
enum class GgufTokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

/// Converts; an unknown kind or pre-tokenizer is refused by name, as are contradictions inside the metadata.
StatusOr<ConvertedTokenizer> convert_gguf_tokenizer(const GgufTokenizerData& data);

} // namespace cortiq::runtime::text
