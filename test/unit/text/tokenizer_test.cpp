#include "runtime/text/tokenizer.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/unit/text/tiny_tokenizer.h"

namespace cortiq::runtime::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(TokenizerTest, MergesByRank) {
  Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_THAT(*tokenizer.encode("hello hell wow"), ElementsAre(kTinyHello, ' ', kTinyHell, kTinySpaceW, 'o', 'w'));
  EXPECT_THAT(*tokenizer.encode(""), ElementsAre());
}

TEST(TokenizerTest, SpecialTextIsATokenOnlyWhenAsked) {
  Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_THAT(*tokenizer.encode("a<s>b"), ElementsAre('a', kTinyBos, 'b'));
  EXPECT_THAT(*tokenizer.encode("a<s>b", {.add_special = true, .parse_special = false}),
              ElementsAre('a', '<', 's', '>', 'b'));
}

TEST(TokenizerTest, AddsBosOnceAndOnlyWhenAsked) {
  Tokenizer tokenizer = tiny_tokenizer(/*add_bos=*/true);
  EXPECT_THAT(*tokenizer.encode("hello"), ElementsAre(kTinyBos, kTinyHello));
  EXPECT_THAT(*tokenizer.encode(""), ElementsAre(kTinyBos));
  EXPECT_THAT(*tokenizer.encode("hello", {.add_special = false}), ElementsAre(kTinyHello));
}

TEST(TokenizerTest, DecodesAndSkips) {
  Tokenizer tokenizer = tiny_tokenizer();
  std::vector<uint32_t> ids = {kTinyBos, kTinyHello, kTinySpaceW, 0xc3, 0xa9};
  EXPECT_EQ(*tokenizer.decode(ids, true), "hello w\u00e9");
  EXPECT_EQ(*tokenizer.decode(ids, false), "<s>hello w\u00e9");
  EXPECT_EQ(*tokenizer.decode(std::vector<uint32_t>{kTinyVocab, 4000000000u}), "");
}

TEST(TokenizerTest, KnowsItsEntries) {
  Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), kTinyVocab);
  EXPECT_EQ(tokenizer.token_text(kTinyHello), "hello");
  EXPECT_EQ(tokenizer.token_text(kTinyVocab), std::nullopt);
  EXPECT_EQ(tokenizer.token_id("<|im_end|>"), kTinyEnd);
  EXPECT_EQ(tokenizer.token_id("no such"), std::nullopt);
  EXPECT_THAT(tokenizer.special_ids(), ElementsAre(kTinyBos, kTinyStart, kTinyEnd));
}

TEST(TokenizerTest, IllFormedTextIsReplacedNotRefused) {
  Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_THAT(*tokenizer.encode("a\xff"), ElementsAre('a', 0xef, 0xbf, 0xbd));
}

TEST(TokenizerTest, RefusesWhatIsNoTokenizer) {
  for (std::string_view bad : {"", "{}", "[]", "{\"model\":{\"type\":\"BPE\"}}", "{\"model\":7}", "\xff\xfe"})
    EXPECT_FALSE(Tokenizer::from_bytes(bytes_of(bad)).ok()) << bad;
}

TEST(TokenizerTest, RefusesIdsThatContradictTheVocabulary) {
  std::string json = tiny_tokenizer_json();
  size_t at = json.find("{\"id\":263");
  ASSERT_NE(at, std::string::npos);
  json.replace(at, 9, "{\"id\":999");
  auto tokenizer = Tokenizer::from_bytes(bytes_of(json));
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("<|im_end|>"));
}

TEST(TokenizerTest, CompactFormIsTheSameTokenizer) {
  for (bool add_bos : {false, true}) {
    std::string json = tiny_tokenizer_json(add_bos);
    auto compact = compact_tokenizer(bytes_of(json));
    ASSERT_TRUE(compact.ok()) << compact.status().message();
    EXPECT_EQ(*compact, *compact_tokenizer(bytes_of(json)));
    auto loaded = Tokenizer::from_bytes(*compact);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    Tokenizer reference = tiny_tokenizer(add_bos);
    EXPECT_EQ(loaded->vocab_size(), reference.vocab_size());
    EXPECT_EQ(loaded->special_ids(), reference.special_ids());
    for (const char* text : {"hello hellhe wow", "<s>x<think>hell", "\xe4\xb8\xad\xf0\x9f\x99\x82", "", "  \n\n"})
      for (bool parse : {false, true})
        EXPECT_EQ(*loaded->encode(text, {true, parse}), *reference.encode(text, {true, parse})) << text;
  }
}

TEST(TokenizerTest, TokensThatShareAnIdKeepTheJsonForm) {
  // Merges are stored by id: with two tokens under one id they would name the wrong one.
  const std::string shared =
      R"({"version":"1.0","added_tokens":[],"model":{"type":"BPE","dropout":null,"unk_token":null,)"
      R"("vocab":{"a":0,"b":1,"ab":1},"merges":[["a","b"]]}})";
  auto compact = compact_tokenizer(bytes_of(shared));
  ASSERT_TRUE(compact.ok()) << compact.status().message();
  EXPECT_EQ(std::string(compact->begin(), compact->end()), shared);
  auto loaded = Tokenizer::from_bytes(*compact);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
}

TEST(TokenizerTest, LeavesDropoutToTraining) {
  std::string json = tiny_tokenizer_json();
  const size_t at = json.find("\"dropout\":null");
  ASSERT_NE(at, std::string::npos);
  json.replace(at, 14, "\"dropout\":0.9");
  for (const auto& form : {std::vector<uint8_t>(json.begin(), json.end()), *compact_tokenizer(bytes_of(json))}) {
    auto tokenizer = Tokenizer::from_bytes(form);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    for (int i = 0; i < 20; ++i)
      EXPECT_THAT(*tokenizer->encode("hello"), ElementsAre(kTinyHello));
  }
}

TEST(TokenizerTest, StagesThatMultiplyTheTextAreRefused) {
  // Each would turn a word into gigabytes, some of them while the tokenizer is still being loaded.
  const std::string replace = R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaaaaaaaaaaaaaa"})";
  const auto sequence = [](const std::string& list, const std::string& stage, int count) {
    std::string out = "{\"type\":\"Sequence\",\"" + list + "\":[" + stage;
    for (int i = 1; i < count; ++i)
      out += "," + stage;
    return out + "]}";
  };
  const std::string nothing =
      R"({"type":"Replace","pattern":{"Regex":"x*"},"content":")" + std::string(5000, 'y') + "\"}";
  const std::string untyped = R"({"normalizers":[{"prepend":")" + std::string(100, 'p') + R"("},{"prepend":")" +
                              std::string(100, 'p') + R"("}]})";
  const std::pair<const char*, std::string> cases[] = {
      {"normalizer", sequence("normalizers", replace, 8)},
      {"normalizer", sequence("normalizers", sequence("normalizers", replace, 2), 4)},
      {"normalizer", nothing},
      {"normalizer", untyped},
      {"normalizer", sequence("normalizers", R"({"type":"NFKD"})", 40)},
      {"pre_tokenizer",
       sequence("pretokenizers", R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})", 40)},
      {"decoder", sequence("decoders", replace, 8)},
  };
  for (const auto& [part, stage] : cases) {
    const std::string json = R"({"version":"1.0","added_tokens":[],")" + std::string(part) + "\":" + stage +
                             R"(,"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})";
    const std::string compact_form = std::string("CQTOK\x01\r\n", 8);
    auto tokenizer = Tokenizer::from_bytes(bytes_of(json));
    ASSERT_FALSE(tokenizer.ok()) << json;
    EXPECT_THAT(tokenizer.status().message(), HasSubstr("times as long")) << json;
    const auto compact = compact_tokenizer(bytes_of(json));
    ASSERT_TRUE(compact.ok());
    ASSERT_TRUE(std::equal(compact_form.begin(), compact_form.end(), compact->begin()));
    EXPECT_THAT(Tokenizer::from_bytes(*compact).status().message(), HasSubstr("times as long")) << json;
  }
}

TEST(TokenizerTest, DamagedCompactFormIsRefusedOrHarmless) {
  std::vector<uint8_t> compact = *compact_tokenizer(bytes_of(tiny_tokenizer_json()));
  for (size_t length = 0; length < compact.size(); length += 7)
    EXPECT_FALSE(Tokenizer::from_bytes(std::span(compact).first(length)).ok()) << length;
  int loaded = 0;
  for (size_t at = 0; at < compact.size(); at += 3) {
    std::vector<uint8_t> damaged = compact;
    damaged[at] ^= 0x41;
    auto tokenizer = Tokenizer::from_bytes(damaged);
    if (!tokenizer.ok())
      continue;
    ++loaded;
    auto ids = tokenizer->encode("hello wow <s>");
    if (ids.ok())
      EXPECT_TRUE(tokenizer->decode(*ids).ok());
  }
  EXPECT_GT(loaded, 0);
}

TEST(TokenizerTest, LongTextsTakeLinearTime) {
  // A run of letters without a break is one piece; twice the text must not take four times as long. The bound is wide
  // enough for a busy machine and far below what quadratic merging takes.
  Tokenizer tokenizer = tiny_tokenizer();
  for (const std::string& text : {std::string(131072, 'Z'), std::string(131072, 'l'), std::string(50000, '\n')}) {
    auto start = std::chrono::steady_clock::now();
    auto ids = tokenizer.encode(text);
    ASSERT_TRUE(ids.ok());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    EXPECT_EQ(*tokenizer.decode(*ids), text);
  }
}

TEST(TokenizerTest, MillionsOfPiecesTakeASecond) {
  // A pattern that gives every digit a piece of its own, as many models have: the work for a piece must be small. A
  // quiet machine takes less than half a second for a megabyte.
  nlohmann::json json = nlohmann::json::parse(tiny_tokenizer_json());
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"},
         {"pattern", {{"Regex", R"(\p{N}| ?\p{L}+|\s+)"}}},
         {"behavior", "Isolated"},
         {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}}}}};
  const std::string bytes = json.dump();
  auto tokenizer = Tokenizer::from_bytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::string text(1 << 20, '7');
  auto start = std::chrono::steady_clock::now();
  auto ids = tokenizer->encode(text);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->size(), text.size());
  EXPECT_EQ(*tokenizer->decode(*ids), text);
  EXPECT_LT(took.count(), 10) << "wide enough for a busy machine under a sanitizer";
  RecordProperty("milliseconds", static_cast<int>(took.count() * 1000));
}

std::vector<std::string> stream(const Tokenizer& tokenizer, const std::vector<uint32_t>& ids) {
  StreamDecoder decoder(tokenizer);
  std::vector<std::string> texts;
  for (uint32_t id : ids)
    texts.push_back(*decoder.push(id));
  texts.push_back(*decoder.flush());
  return texts;
}

TEST(StreamDecoderTest, HoldsIncompleteCharacters) {
  Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_THAT(stream(tokenizer, {0xe2, 0x82, 0xac}), ElementsAre("", "", "\u20ac", ""));
  EXPECT_THAT(stream(tokenizer, {'a', 0xf0, 0x9f}), ElementsAre("a", "", "", "\ufffd"));
  EXPECT_THAT(stream(tokenizer, {0xe2, 0x82, 'a'}), ElementsAre("", "",
                                                                "\ufffd"
                                                                "a",
                                                                ""));
  EXPECT_THAT(stream(tokenizer, {0x90, 'b'}), ElementsAre("\ufffd", "b", ""));
}

TEST(StreamDecoderTest, SkipsSpecialTokensAndIdsWithoutText) {
  Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_THAT(stream(tokenizer, {kTinyBos, kTinyHello, kTinyThink, kTinyVocab + 3, kTinyEnd}),
              ElementsAre("", "hello", "<think>", "", "", ""));
  StreamDecoder all(tokenizer, /*skip_special=*/false);
  EXPECT_EQ(*all.push(kTinyEnd), "<|im_end|>");
}

TEST(StreamDecoderTest, FlushStartsAnew) {
  StreamDecoder decoder(tiny_tokenizer());
  EXPECT_EQ(*decoder.push(0xe2), "");
  EXPECT_EQ(*decoder.flush(), "\ufffd");
  EXPECT_EQ(*decoder.push('x'), "x");
  EXPECT_EQ(*decoder.flush(), "");
}

} // namespace
} // namespace cortiq::runtime::text
