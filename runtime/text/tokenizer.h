#pragma once

// Text to token ids and back, as the tokenizer.json of a model says.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/status.h"

struct CortiqTextTokenizer;
struct CortiqTextStream;

namespace cortiq::runtime::text {

struct EncodeOptions {
  bool add_special = true;   ///< with what the tokenizer puts around a text (BOS, EOS)
  bool parse_special = true; ///< special tokens spelled out in the text become their ids; else they are plain text
};

/// A loaded tokenizer. Copies share it; its functions may be called from several threads.
class Tokenizer {
public:
  /// Reads the bytes of a tokenizer.json, or of its compact form. Fails for what the library does not execute, for ids
  /// that contradict the vocabulary, and in a build without the text library.
  static StatusOr<Tokenizer> from_bytes(std::span<const uint8_t> bytes);

  /// Ids of `text`. Ill-formed UTF-8 is read as U+FFFD. Time grows linearly with the text.
  StatusOr<std::vector<uint32_t>> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// Text of `ids`; ids without text add nothing.
  StatusOr<std::string> decode(std::span<const uint32_t> ids, bool skip_special = true) const;

  /// The vocabulary entry `id` as it is spelled there (byte-level and word marks included); empty optional: no text.
  std::optional<std::string> token_text(uint32_t id) const;
  /// The id of an entry or added token spelled `text`.
  std::optional<uint32_t> token_id(std::string_view text) const;
  /// Ids of special tokens, ascending.
  std::vector<uint32_t> special_ids() const;
  /// One above the highest id that has text. Logits rows from here on must not be sampled.
  uint32_t vocab_size() const;

private:
  friend class StreamDecoder;
  friend struct TokenizerAccess;
  explicit Tokenizer(std::shared_ptr<const CortiqTextTokenizer> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<const CortiqTextTokenizer> handle_;
};

/// The compact form of a tokenizer.json, which loads several times faster; the same bytes where there is none (models
/// other than BPE). Same input, same bytes. This is what an artifact's tokenizer section holds.
StatusOr<std::vector<uint8_t>> compact_tokenizer(std::span<const uint8_t> tokenizer_json);

/// Turns ids into text while they arrive. What push() returns is final: it never ends inside a character.
class StreamDecoder {
public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special = true);

  /// The text that became final with `id`; empty while a character is incomplete and for special tokens when skipped
  /// (markup of tool calls is always shown).
  StatusOr<std::string> push(uint32_t id);
  /// The rest at the end of generation, an incomplete character as one U+FFFD. The decoder is then as new.
  StatusOr<std::string> flush();

private:
  struct Free {
    void operator()(CortiqTextStream* stream) const;
  };
  Tokenizer tokenizer_;
  std::unique_ptr<CortiqTextStream, Free> stream_;
};

} // namespace cortiq::runtime::text
