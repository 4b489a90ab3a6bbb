#include "runtime/text/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/text/gguf_pretokenizers.h"
#include "runtime/text/tokenizer.h"

namespace cortiq::runtime::text {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6;

struct Entry {
  std::string_view text;
  int64_t type = kNormal;
  double score = 0;
};

GgufTokenizerData data_of(std::string_view model, std::vector<Entry> entries) {
  GgufTokenizerData data;
  data.model = model;
  data.scores.emplace();
  data.token_types.emplace();
  for (const Entry& entry : entries) {
    data.tokens.push_back(entry.text);
    data.scores->push_back(entry.score);
    data.token_types->push_back(entry.type);
  }
  return data;
}

GgufTokenizerData bpe(std::string_view pre = "gpt-2") {
  GgufTokenizerData data = data_of("gpt2", {{"a"},
                                            {"b"},
                                            {"c"},
                                            {"l"},
                                            {"e"},
                                            {"1"},
                                            {"2"},
                                            {"\u0120"},
                                            {"le"},
                                            {"ca"},
                                            {"\u0120a"},
                                            {"ab", kUserDefined},
                                            {"<think>", kUserDefined},
                                            {"<|im_end|>", kNormal},
                                            {"<s>", kControl}});
  data.merges = {"l e", "c a", "\u0120 a"};
  data.pre = pre;
  data.bos = 14;
  return data;
}

Tokenizer load(const ConvertedTokenizer& converted) {
  const std::string& json = converted.tokenizer_json;
  auto tokenizer = Tokenizer::from_bytes(std::span(reinterpret_cast<const uint8_t*>(json.data()), json.size()));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message() << "\n" << json;
  return *std::move(tokenizer);
}

Tokenizer convert(const GgufTokenizerData& data) {
  auto converted = convert_gguf_tokenizer(data);
  EXPECT_TRUE(converted.ok()) << converted.status().message();
  return load(*converted);
}

std::string refusal(const GgufTokenizerData& data) {
  auto converted = convert_gguf_tokenizer(data);
  return converted.ok() ? "accepted" : converted.status().message();
}

TEST(GgufTokenizerTest, UserDefinedTokensMatchFirstEvenInsideWords) {
  Tokenizer tokenizer = convert(bpe());
  EXPECT_THAT(*tokenizer.encode("cable"), ElementsAre(2, 11, 8));
  EXPECT_THAT(*tokenizer.encode("a<think>", {true, false}), ElementsAre(0, 12));
}

TEST(GgufTokenizerTest, ControlTokensMatchOnlyWhenParsed) {
  Tokenizer tokenizer = convert(bpe());
  EXPECT_THAT(*tokenizer.encode("a<s>"), ElementsAre(0, 14));
  EXPECT_THAT(*tokenizer.encode("a<s>", {true, false}), ElementsAre(0)); // the characters are no entries
}

TEST(GgufTokenizerTest, WellKnownEndTextsEndWhateverTheirType) {
  auto converted = convert_gguf_tokenizer(bpe());
  ASSERT_TRUE(converted.ok());
  EXPECT_THAT(converted->config.eos_ids, ElementsAre(13));
  EXPECT_THAT(load(*converted).special_ids(), Contains(13u));
}

TEST(GgufTokenizerTest, EveryKnownPreTokenizerLoadsAndEncodes) {
  for (std::string_view name : gguf_pre_tokenizer_names()) {
    SCOPED_TRACE(name);
    GgufTokenizerData data = bpe(name);
    Tokenizer tokenizer = convert(data);
    auto ids = tokenizer.encode("a cab 1212 l\n\n e'll", {.add_special = false});
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_FALSE(ids->empty());
  }
}

TEST(GgufTokenizerTest, PreTokenizerDecidesTheDefaultBos) {
  EXPECT_THAT(*convert(bpe("gpt-2")).encode("a"), ElementsAre(0));
  EXPECT_THAT(*convert(bpe("llama-bpe")).encode("a"), ElementsAre(14, 0));
  GgufTokenizerData data = bpe("llama-bpe");
  data.add_bos = false;
  EXPECT_THAT(*convert(data).encode("a"), ElementsAre(0));
}

TEST(GgufTokenizerTest, AMissingPreIsWarnedAnUnknownOneRefusedByName) {
  GgufTokenizerData data = bpe();
  data.pre.reset();
  auto converted = convert_gguf_tokenizer(data);
  ASSERT_TRUE(converted.ok());
  EXPECT_THAT(converted->warnings, Contains(HasSubstr("tokenizer.ggml.pre")));
  EXPECT_THAT(convert_gguf_tokenizer(bpe())->warnings, IsEmpty());
  EXPECT_THAT(refusal(bpe("nonsense")), HasSubstr("'nonsense'"));
}

TEST(GgufTokenizerTest, RefusesKindsByName) {
  GgufTokenizerData data = bpe();
  data.model = "rwkv";
  EXPECT_THAT(refusal(data), HasSubstr("'rwkv'"));
  data.model = "none";
  EXPECT_THAT(refusal(data), HasSubstr("no tokenizer"));
  data.model = "";
  EXPECT_THAT(refusal(data), HasSubstr("tokenizer.ggml.model"));
}

TEST(GgufTokenizerTest, RefusesContradictions) {
  GgufTokenizerData data = bpe();
  data.scores->pop_back();
  EXPECT_THAT(refusal(data), ::testing::AllOf(HasSubstr("tokenizer.ggml.scores"), HasSubstr("14"), HasSubstr("15")));
  data = bpe();
  data.token_types->resize(3);
  EXPECT_THAT(refusal(data), HasSubstr("tokenizer.ggml.token_type"));
  data = bpe();
  data.tokens[3] = "a";
  EXPECT_THAT(refusal(data), HasSubstr("token 3 repeats token 0"));
  data = bpe();
  data.tokens[3] = "\xff";
  EXPECT_THAT(refusal(data), HasSubstr("token 3"));
  data = bpe();
  data.merges.reset();
  EXPECT_THAT(refusal(data), HasSubstr("tokenizer.ggml.merges"));
  data = bpe();
  data.merges->push_back("nospace");
  EXPECT_THAT(refusal(data), HasSubstr("entry 3"));
  data = bpe();
  data.tokens.clear();
  EXPECT_THAT(refusal(data), HasSubstr("tokenizer.ggml.tokens"));
}

TEST(GgufTokenizerTest, IdsBeyondTheVocabularyAreIgnoredWithAWarning) {
  GgufTokenizerData data = bpe();
  data.eos = 99;
  data.bos = UINT32_MAX;
  data.suppress_tokens = {-1, 3, 99};
  auto converted = convert_gguf_tokenizer(data);
  ASSERT_TRUE(converted.ok());
  EXPECT_THAT(converted->warnings, ElementsAre(HasSubstr("eos_token_id is 99")));
  EXPECT_EQ(converted->config.bos_id, std::nullopt);
  EXPECT_THAT(converted->config.suppress_ids, ElementsAre(3));
}

TEST(GgufTokenizerTest, GptOssEndsDoNotIncludeItsMessageEnd) {
  GgufTokenizerData data = data_of(
      "gpt2",
      {{"a"}, {"<|end|>", kControl}, {"<|return|>", kControl}, {"<|call|>", kControl}, {"<|channel|>", kControl}});
  data.merges.emplace();
  data.pre = "gpt-4o";
  auto converted = convert_gguf_tokenizer(data);
  ASSERT_TRUE(converted.ok());
  EXPECT_THAT(converted->config.eos_ids, ElementsAre(2, 3));
  EXPECT_THAT(load(*converted).special_ids(), ElementsAre(1, 2, 3));
}

GgufTokenizerData sentencepiece() {
  GgufTokenizerData data = data_of("llama", {{"<unk>", kUnknown}, {"<s>", kControl}, {"</s>", kControl}});
  static const std::vector<std::string> bytes = [] {
    std::vector<std::string> texts;
    for (int byte = 0; byte < 256; ++byte) {
      char text[8];
      std::snprintf(text, sizeof text, "<0x%02X>", byte);
      texts.push_back(text);
    }
    return texts;
  }();
  for (const std::string& text : bytes) {
    data.tokens.push_back(text);
    data.scores->push_back(0);
    data.token_types->push_back(kByte);
  }
  for (Entry entry :
       {Entry{"\u2581"}, {"a"}, {"b"}, {"ab", kNormal, -2}, {"\u2581a", kNormal, -1}, {"\u2581ab", kNormal, -3}}) {
    data.tokens.push_back(entry.text);
    data.scores->push_back(entry.score);
    data.token_types->push_back(entry.type);
  }
  return data;
}

TEST(GgufTokenizerTest, SentencePieceMergesByScoreWithBytesForTheRest) {
  Tokenizer tokenizer = convert(sentencepiece());
  constexpr uint32_t kMark = 259, kAb = 262, kMarkA = 263, kMarkAb = 264;
  // "▁a" (-1) comes before "ab" (-2), then "▁a" + "b" makes "▁ab".
  EXPECT_THAT(*tokenizer.encode("ab"), ElementsAre(1, kMarkAb));
  EXPECT_THAT(*tokenizer.encode("a ab", {.add_special = false}), ElementsAre(kMarkA, kMarkAb));
  EXPECT_THAT(*tokenizer.encode("\u00e9", {.add_special = false}), ElementsAre(kMark, 3 + 0xc3, 3 + 0xa9));
  EXPECT_EQ(*tokenizer.decode(std::vector<uint32_t>{1, kMarkAb, kMark, kAb}), "ab ab");
}

TEST(GgufTokenizerTest, SpacePrefixAndBosFollowTheirKeys) {
  GgufTokenizerData data = sentencepiece();
  data.add_space_prefix = false;
  data.add_bos = false;
  data.add_eos = true;
  EXPECT_THAT(*convert(data).encode("ab"), ElementsAre(262, 2));
}

TEST(GgufTokenizerTest, WordPieceGetsItsMarksBack) {
  GgufTokenizerData data = data_of("bert", {{"[PAD]", kControl},
                                            {"[UNK]", kUnknown},
                                            {"[CLS]", kControl},
                                            {"[SEP]", kControl},
                                            {"\u2581play"},
                                            {"ing"},
                                            {"\u2581."}});
  data.pad = 0;
  data.unk = 1;
  data.bos = 2;
  data.sep = 3;
  Tokenizer tokenizer = convert(data);
  EXPECT_THAT(*tokenizer.encode("Playing. x"), ElementsAre(2, 4, 5, 6, 1, 3));
  EXPECT_EQ(tokenizer.token_text(5), "##ing");
}

TEST(GgufTokenizerTest, AWholeTokenizerJsonIsPreferred) {
  GgufTokenizerData data = bpe();
  std::string json = convert_gguf_tokenizer(data)->tokenizer_json;
  data.huggingface_json = json;
  data.pre = "nonsense";
  auto converted = convert_gguf_tokenizer(data);
  ASSERT_TRUE(converted.ok());
  EXPECT_EQ(converted->tokenizer_json, json);
}

} // namespace
} // namespace cortiq::runtime::text
