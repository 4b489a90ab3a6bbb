#pragma once

// For the library's own files.

#include "runtime/text/tokenizer.h"

namespace cortiq::runtime::text {

/// Reaches the handle of a Tokenizer.
struct TokenizerAccess {
  static const CortiqTextTokenizer* handle(const Tokenizer& tokenizer) { return tokenizer.handle_.get(); }
};

} // namespace cortiq::runtime::text
