#include "formats/json.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "test/unit/base/test_files.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

TEST(ParseJson, ReadsValues) {
  const StatusOr<Json> json = parse_json(R"({"a": [1, -2, 0.5, "x", null, true]})", "it");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ((*json)["a"].size(), 6u);
  EXPECT_EQ((*json)["a"][1].get<int>(), -2);
}

TEST(ParseJson, SaysWhatIsWrong) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "the header is not valid JSON"},
      {"{\"a\": 1} x", "not valid JSON at byte 10"},
      {"{\"a\": 1e999}", "not valid JSON"},
      {"\"\xff\"", "not valid JSON"},
      {"{\"a\": {\"b\": 1, \"b\": 2}}", "names the key 'b' twice"},
      {std::string(200000, '['), "deeper than 128"},
      {std::string(1000, '[') + std::string(1000, ']'), "deeper than 128"},
  };
  for (const auto& [text, reason] : cases) {
    const StatusOr<Json> json = parse_json(text, "the header");
    ASSERT_FALSE(json.ok()) << text.substr(0, 40);
    EXPECT_THAT(json.status().message(), HasSubstr(reason));
    EXPECT_TRUE(test::is_one_sentence(json.status().message()));
  }
}

TEST(ParseJson, SameKeyInDifferentObjectsIsFine) {
  EXPECT_TRUE(parse_json(R"({"a": {"a": 1}, "b": {"a": 2}})", "it").ok());
}

} // namespace
} // namespace cortiq::formats
