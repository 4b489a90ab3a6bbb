#pragma once

// Which codecs a GPU's expert bank reads as they stand in the file.

#include <algorithm>
#include <iterator>

#include "formats/codec/codec.h"

namespace cortiq::formats {

/// Of gate and up, and of down.
struct BankCodecs {
  CodecId outer, down;
};
inline constexpr BankCodecs kBankCodecs[] = {{CodecId::kQ4TP, CodecId::kQ4TP},
                                             {CodecId::kQ2TP, CodecId::kQ4TP},
                                             {CodecId::kMXFP4, CodecId::kMXFP4},
                                             {CodecId::kMXFP4_GGML, CodecId::kMXFP4_GGML}};

inline bool bank_reads(CodecId outer, CodecId down) {
  return std::any_of(std::begin(kBankCodecs), std::end(kBankCodecs),
                     [&](const BankCodecs& row) { return row.outer == outer && row.down == down; });
}

} // namespace cortiq::formats
