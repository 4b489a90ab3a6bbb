#include "test/unit/text/tiny_tokenizer.h"

#include <span>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cortiq::runtime::text {
namespace {

using Json = nlohmann::ordered_json;

/// The character that stands for a byte in byte-level vocabularies.
std::string byte_character(unsigned byte) {
  static const std::vector<unsigned> codes = [] {
    std::vector<unsigned> table(256);
    unsigned next = 256;
    for (unsigned b = 0; b < 256; ++b)
      table[b] = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b : next++;
    return table;
  }();
  unsigned code = codes[byte];
  if (code < 0x80)
    return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

Json added(uint32_t id, const char* text, bool special) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

} // namespace

std::string tiny_tokenizer_json(bool add_bos) {
  Json vocab;
  for (unsigned byte = 0; byte < 256; ++byte)
    vocab[byte_character(byte)] = byte;
  vocab["he"] = kTinyHe;
  vocab["ll"] = kTinyLl;
  vocab["hell"] = kTinyHell;
  vocab["hello"] = kTinyHello;
  vocab["\u0120w"] = kTinySpaceW;
  Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  Json root = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", Json::array({added(kTinyBos, "<s>", true), added(kTinyStart, "<|im_start|>", true),
                                    added(kTinyEnd, "<|im_end|>", true), added(kTinyThink, "<think>", false)})},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", {"h e", "l l", "he ll", "hell o", "\u0120 w"}}}}};
  if (add_bos) {
    Json single = {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}};
    root["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", single},
                              {"pair", single},
                              {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {kTinyBos}}, {"tokens", {"<s>"}}}}}}};
  }
  return root.dump();
}

Tokenizer tiny_tokenizer(bool add_bos) {
  std::string json = tiny_tokenizer_json(add_bos);
  auto tokenizer = Tokenizer::from_bytes(std::span(reinterpret_cast<const uint8_t*>(json.data()), json.size()));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *std::move(tokenizer);
}

} // namespace cortiq::runtime::text
