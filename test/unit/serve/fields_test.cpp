#include "tools/cortiq-serve/openai/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::serve {
namespace {

using ::testing::HasSubstr;

TEST(ParseBody, TakesObjectsOfBoundedDepth) {
  EXPECT_TRUE(parse_body(R"({"a": [1, {"b": "]]]]"}]})").ok());
  EXPECT_THAT(parse_body("{").status().message(), HasSubstr("not JSON"));
  EXPECT_THAT(parse_body("").status().message(), HasSubstr("not JSON"));
  EXPECT_THAT(parse_body("[1]").status().message(), HasSubstr("not a JSON object"));
  const auto nested = [](int levels) {
    return R"({"a":)" + std::string(static_cast<size_t>(levels) - 1, '[') +
           std::string(static_cast<size_t>(levels) - 1, ']') + "}";
  };
  EXPECT_TRUE(parse_body(nested(kMaxDepth)).ok());
  EXPECT_THAT(parse_body(nested(kMaxDepth + 1)).status().message(), HasSubstr("levels"));
  EXPECT_THAT(parse_body(nested(1000000)).status().message(), HasSubstr("levels"));
  EXPECT_TRUE(parse_body(R"({"a": "\"[[[[\\"})").ok());
}

TEST(Fields, NameWhatIsWrong) {
  const Json object = {{"n", 3.0}, {"half", 0.5}, {"text", "t"}, {"none", nullptr}, {"minus", -1}, {"huge", 1e300}};
  const Fields fields(object);
  EXPECT_EQ(*fields.whole("n", 10), std::optional<uint64_t>(3));
  EXPECT_EQ(*fields.whole("none", 10), std::nullopt);
  EXPECT_EQ(*fields.whole("absent", 10), std::nullopt);
  EXPECT_EQ(*fields.text("text"), std::optional<std::string>("t"));
  EXPECT_EQ(*fields.flag("none", true), true);
  for (const char* name : {"half", "text", "minus", "huge"})
    EXPECT_THAT(fields.whole(name, 10).status().message(), HasSubstr(std::string("`") + name + "`"));
  EXPECT_THAT(fields.whole("n", 2).status().message(), HasSubstr("0 to 2"));
  EXPECT_FALSE(fields.flag("n", true).ok());
  EXPECT_FALSE(fields.text("n").ok());
}

TEST(Dump, AlwaysGivesJson) {
  EXPECT_EQ(dump("a\xF0\x9F"), "\"a\xEF\xBF\xBD\"");
}

} // namespace
} // namespace cortiq::serve
