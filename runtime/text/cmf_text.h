#pragma once

// A CMF file's tokenizer section and chat bundle.

#include <string_view>

#include "formats/cmf/cmf_header.h"
#include "formats/status.h"
#include "runtime/text/text_config.h"
#include "runtime/text/tokenizer.h"

namespace cortiq::runtime::text {

/// The configuration of a CMF model: the chat bundle's, completed by the special tokens that the vocabulary shows.
TextConfig cmf_text_config(const Tokenizer& tokenizer, const std::optional<formats::CmfTokenizerConfig>& bundle);

} // namespace cortiq::runtime::text
