#pragma once

// From the GGUF reader to the tokenizer conversion.

#include "formats/gguf/gguf_file.h"
#include "formats/status.h"
#include "runtime/text/gguf_tokenizer.h"

namespace cortiq::runtime::text {

/// The tokenizer metadata of `file`, with views into it. Fails for keys of a wrong type.
StatusOr<GgufTokenizerData> read_gguf_tokenizer_data(const formats::GgufFile& file);

} // namespace cortiq::runtime::text
