#pragma once

// The tokenizer section of an artifact: a model's text configuration and its tokenizer in the form that loads fastest.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/status.h"
#include "runtime/text/text_config.h"
#include "runtime/text/tokenizer.h"

namespace cortiq::runtime::text {

/// A model's text side, ready for use.
struct TextModel {
  Tokenizer tokenizer;
  TextConfig config;
};

/// The section's bytes for a tokenizer.json and its configuration. Same input, same bytes. Fails where the tokenizer
/// does not load.
StatusOr<std::vector<uint8_t>> pack_text_section(std::span<const uint8_t> tokenizer_json, const TextConfig& config);

/// Reads a section that pack_text_section() made; anything else is refused.
StatusOr<TextModel> open_text_section(std::span<const uint8_t> section);

} // namespace cortiq::runtime::text
