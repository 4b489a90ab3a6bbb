#include "runtime/text/constraint.h"

#include <chrono>
#include <cmath>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/sampling/sampler.h"
#include "test/unit/text/tiny_tokenizer.h"

namespace cortiq::runtime::text {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr std::chrono::seconds kLongestCompile{5}; // far above what is seen, on a busy machine too

Vocabulary vocabulary() {
  const uint32_t ends[] = {kTinyEnd};
  StatusOr<Vocabulary> out = Vocabulary::create(tiny_tokenizer(), kTinyVocab, ends);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return *out;
}

Status compiles(Notation notation, const std::string& source) {
  static const Vocabulary words = vocabulary();
  const auto start = std::chrono::steady_clock::now();
  const Status status = words.constrain(notation, source).status();
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLongestCompile) << source.substr(0, 200);
  return status;
}

/// A text that a model without any idea writes under a constraint: each choice is by chance. Empty: it came to no end.
std::optional<std::string> scribble(Constraint& constraint, uint64_t seed, size_t most = 4000) {
  const Tokenizer tokenizer = tiny_tokenizer();
  sampling::SplitMix64 random(seed);
  std::vector<uint32_t> ids;
  while (ids.size() < most) {
    std::vector<float> logits(kTinyVocab + 3, 0.0f); // rows without an entry
    constraint.mask(logits);
    std::vector<uint32_t> allowed;
    for (uint32_t id = 0; id < logits.size(); ++id)
      if (logits[id] == 0)
        allowed.push_back(id);
      else
        EXPECT_EQ(logits[id], -INFINITY);
    if (allowed.empty())
      return std::nullopt;
    // Quotes and ends more often than their share: texts of chance would be long.
    const auto has = [&](uint32_t id) { return std::find(allowed.begin(), allowed.end(), id) != allowed.end(); };
    uint32_t id = allowed[static_cast<size_t>(random.uniform() * static_cast<double>(allowed.size()))];
    for (const uint32_t likely : {uint32_t{'"'}, uint32_t{'}'}, uint32_t{']'}, kTinyEnd})
      if (has(likely) && random.uniform() < 0.3)
        id = likely;
    if (id == kTinyEnd)
      return *tokenizer.decode(ids);
    ids.push_back(id);
    if (!constraint.accept(id))
      return constraint.failure().ok() ? std::optional(*tokenizer.decode(ids)) : std::nullopt;
  }
  return std::nullopt;
}

TEST(ConstraintTest, WhateverIsChosenIsJsonOfTheSchema) {
  const Json schema = {{"type", "object"},
                       {"properties",
                        {{"name", {{"type", "string"}, {"maxLength", 12}}},
                         {"age", {{"type", "integer"}, {"minimum", 0}, {"maximum", 150}}},
                         {"kind", {{"enum", {"a \"quoted\" one", "h\u00e4\u00df\u4e2d", 7, nullptr}}}},
                         {"tags", {{"type", "array"}, {"items", {{"type", "boolean"}}}, {"maxItems", 3}}}}},
                       {"required", {"name", "age", "kind", "tags"}},
                       {"additionalProperties", false}};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto constraint = vocabulary().constrain(Notation::kSchema, schema.dump());
    ASSERT_TRUE(constraint.ok()) << constraint.status().message();
    const std::optional<std::string> text = scribble(**constraint, seed);
    ASSERT_TRUE(text) << (*constraint)->failure().message();
    const Json value = Json::parse(*text, nullptr, false);
    ASSERT_TRUE(value.is_object()) << *text;
    EXPECT_EQ(value.size(), 4u) << *text;
    EXPECT_TRUE(value["name"].is_string()) << *text;
    EXPECT_TRUE(value["age"].is_number_integer() && value["age"] >= 0 && value["age"] <= 150) << *text;
    EXPECT_THAT(schema["properties"]["kind"]["enum"], testing::Contains(value["kind"])) << *text;
    EXPECT_TRUE(value["tags"].is_array() && value["tags"].size() <= 3) << *text;
  }
}

TEST(ConstraintTest, ARecursiveTreeIsLegal) {
  const Json schema = {{"$defs",
                        {{"tree",
                          {{"type", "object"},
                           {"properties",
                            {{"value", {{"type", "integer"}}},
                             {"children", {{"type", "array"}, {"items", {{"$ref", "#/$defs/tree"}}}}}}},
                           {"required", {"value", "children"}},
                           {"additionalProperties", false}}}}},
                       {"$ref", "#/$defs/tree"}};
  const auto constraint = vocabulary().constrain(Notation::kSchema, schema.dump());
  ASSERT_TRUE(constraint.ok()) << constraint.status().message();
  int trees = 0;
  for (uint64_t seed = 0; seed < 10; ++seed)
    if (const auto text = scribble(**(*constraint)->copy(), seed)) {
      EXPECT_TRUE(Json::parse(*text, nullptr, false).is_object()) << *text;
      ++trees;
    }
  EXPECT_GT(trees, 0);
}

TEST(ConstraintTest, EmptyObjectsAndAnyValueAreJson) {
  for (const char* schema : {R"({"type":"object","properties":{}})", "{}", "true", R"({"type":"object"})",
                             R"({"type":"object","additionalProperties":false})"}) {
    const auto constraint = vocabulary().constrain(Notation::kSchema, schema);
    ASSERT_TRUE(constraint.ok()) << schema << ": " << constraint.status().message();
    const auto text = scribble(**constraint, 3);
    ASSERT_TRUE(text) << schema;
    EXPECT_FALSE(Json::parse(*text, nullptr, false).is_discarded()) << *text;
  }
}

TEST(ConstraintTest, ExpressionsAndGrammarsHoldForTheWholeText) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto regex = vocabulary().constrain(Notation::kRegex, "(hell|hello)( w[0-9]{2,3}){1,2}");
    ASSERT_TRUE(regex.ok()) << regex.status().message();
    const auto text = scribble(**regex, seed);
    ASSERT_TRUE(text);
    EXPECT_TRUE(std::regex_match(*text, std::regex("(hell|hello)( w[0-9]{2,3}){1,2}"))) << *text;
    const auto lark =
        vocabulary().constrain(Notation::kLark, "start: sum\nsum: NUMBER (\"+\" NUMBER)*\nNUMBER: /[0-9]/");
    ASSERT_TRUE(lark.ok()) << lark.status().message();
    const auto sum = scribble(**lark, seed);
    ASSERT_TRUE(sum);
    EXPECT_TRUE(std::regex_match(*sum, std::regex("[0-9]([+][0-9])*"))) << *sum;
  }
}

TEST(ConstraintTest, CopiesGoTheirOwnWay) {
  const auto constraint = vocabulary().constrain(Notation::kRegex, "[ab]c");
  ASSERT_TRUE(constraint.ok());
  const auto other = (*constraint)->copy();
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE((*constraint)->accept('a'));
  EXPECT_FALSE((*constraint)->accept('c'));
  EXPECT_TRUE((*other)->accept('b'));
}

TEST(ConstraintTest, AModelWithoutAnEndStopsWhereNothingFollows) {
  const auto words = Vocabulary::create(tiny_tokenizer(), kTinyVocab, {});
  ASSERT_TRUE(words.ok());
  const auto constraint = words->constrain(Notation::kSchema, R"({"type":"boolean"})");
  ASSERT_TRUE(constraint.ok());
  const auto text = scribble(**constraint, 1);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, AnyOf("true", "false"));
}

TEST(ConstraintTest, WhatFailsNamesItsPlace) {
  const auto message = [](const std::string& schema) { return compiles(Notation::kSchema, schema).message(); };
  EXPECT_THAT(message(R"({"$defs":{"A":{"$ref":"#/$defs/A"}},"$ref":"#/$defs/A"})"), HasSubstr("leads back to itself"));
  EXPECT_THAT(message(R"({"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"}]}},"$ref":"#/$defs/A"})"), HasSubstr("#"));
  EXPECT_THAT(message(R"({"properties":{"a":{"$ref":"#/nowhere"}}})"), HasSubstr("#/properties/a/$ref"));
  EXPECT_THAT(message(R"({"properties":{"a":{"$ref":"http://x/y"}}})"), HasSubstr("http://x/y"));
  EXPECT_THAT(message(R"({"properties":{"a":{"items":{"type":"strange"}}}})"), HasSubstr("#/properties/a/items"));
  EXPECT_THAT(
      message(R"({"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":1}},"required":["a"]})"),
      HasSubstr("#/properties/a"));
  EXPECT_THAT(message(R"({"type":"array","uniqueItems":true})"), HasSubstr("uniqueItems"));
  EXPECT_TRUE(compiles(Notation::kLooseSchema, R"({"type":"array","uniqueItems":true})").ok());
  EXPECT_THAT(message(R"({"type":"string","pattern":"(a"})"), HasSubstr("#"));
  EXPECT_THAT(message("[1]"), HasSubstr("neither an object"));
  EXPECT_THAT(message("{"), HasSubstr("not JSON"));
  EXPECT_THAT(compiles(Notation::kLark, "start: nothing").message(), HasSubstr("grammar"));
  EXPECT_THAT(compiles(Notation::kRegex, "(a").message(), HasSubstr("regular expression"));
  EXPECT_THAT(compiles(Notation::kRegex, "").message(), HasSubstr("empty"));
}

std::string repeat(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    out += text;
  return out;
}

/// Legal or not: an answer within the time, and no end of the process.
TEST(ConstraintTest, HugeSourcesAreBounded) {
  std::string deep = "true";
  for (int i = 0; i < 2000; ++i)
    deep = R"({"properties":{"a":)" + deep + "}}";
  EXPECT_FALSE(compiles(Notation::kSchema, deep).ok());
  static_cast<void>(compiles(Notation::kSchema, R"({"type":"string","maxLength":65536})"));
  static_cast<void>(compiles(
      Notation::kSchema,
      R"({"type":"array","items":{"type":"array","items":{"type":"string","maxLength":65536},"maxItems":65536},"minItems":60000})"));
  static_cast<void>(
      compiles(Notation::kSchema, R"({"type":"string","pattern":"^(((((a{1,100}){1,100}){1,100}){1,100}){1,100})$"})"));
  static_cast<void>(
      compiles(Notation::kSchema, R"({"type":"integer","minimum":-1e300,"maximum":1e300,"multipleOf":7})"));
  Json many = {{"type", "object"}, {"properties", Json::object()}};
  for (int i = 0; i < 2000; ++i)
    many["properties"]["p" + std::to_string(i)] = {{"type", "string"}};
  static_cast<void>(compiles(Notation::kSchema, many.dump()));
  EXPECT_FALSE(compiles(Notation::kSchema, R"({"description":")" + std::string(300000, 'x') + "\"}").ok());
  EXPECT_FALSE(compiles(Notation::kRegex, repeat("(", 5000) + "a" + repeat(")", 5000)).ok());
  static_cast<void>(compiles(Notation::kRegex, repeat("(a?)", 4000)));
  static_cast<void>(compiles(Notation::kRegex, repeat("a", 16000)));
  static_cast<void>(compiles(Notation::kRegex, repeat("ab|", 5000) + "c"));
  EXPECT_FALSE(compiles(Notation::kRegex, repeat("a", 20000)).ok());
  EXPECT_FALSE(compiles(Notation::kSchema, R"({"type":"string","pattern":")" + repeat("a", 20000) + "\"}").ok());
  static_cast<void>(compiles(Notation::kRegex, "(.*a.{5000}){100}"));
  static_cast<void>(compiles(Notation::kLark, "start: " + repeat("\"a\" ", 60000)));
  std::string chain = "start: r0\n";
  for (int i = 0; i < 16000; ++i)
    chain += "r" + std::to_string(i) + ": r" + std::to_string(i + 1) + "\n";
  static_cast<void>(compiles(Notation::kLark, chain + "r16000: \"a\""));
  static_cast<void>(compiles(Notation::kLark, "start: start start | \"a\""));
  static_cast<void>(compiles(Notation::kLark, "start: start"));
  static_cast<void>(compiles(Notation::kLark, "start: " + repeat("!", 250000)));
  static_cast<void>(compiles(Notation::kLark, "start: \"a\"" + repeat("?", 250000)));
}

} // namespace
} // namespace cortiq::runtime::text
