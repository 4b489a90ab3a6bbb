#pragma once

#include <string>

#include "runtime/text/tokenizer.h"

namespace cortiq::runtime::text {

/// A byte-level BPE tokenizer.json with the 256 bytes (id = byte), a few merges and chat markers.
std::string tiny_tokenizer_json(bool add_bos = false);

/// The same, loaded; fails the test when it does not load.
Tokenizer tiny_tokenizer(bool add_bos = false);

constexpr uint32_t kTinyHe = 256, kTinyLl = 257, kTinyHell = 258, kTinyHello = 259, kTinySpaceW = 260;
constexpr uint32_t kTinyBos = 261, kTinyStart = 262, kTinyEnd = 263, kTinyThink = 264;
constexpr uint32_t kTinyVocab = 265;

} // namespace cortiq::runtime::text
