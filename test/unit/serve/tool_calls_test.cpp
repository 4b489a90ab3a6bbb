#include "tools/cortiq-serve/openai/tool_calls/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::serve {
namespace {

using ::testing::HasSubstr;

const std::vector<Function> kFunctions = {
    {"weather",
     {{"type", "object"},
      {"properties", {{"city", {{"type", "string"}}}, {"days", {{"type", "integer"}}}}},
      {"required", {"city"}}}},
    {"time", {{"type", "object"}}}};

struct Case {
  const char* what;
  const CallFormat* format;
  const char* answer;
  const char* text;
  std::vector<std::pair<std::string, std::string>> calls;
};

const Case kCases[] = {
    {"one call",
     &kHermesCalls,
     "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"K\\u00f6ln }\"}}\n</tool_call>",
     "",
     {{"weather", R"({"city":"Köln }"})"}}},
    {"text before, two calls",
     &kHermesCalls,
     "Let me "
     "see.<tool_call>{\"name\":\"time\",\"arguments\":{}}</"
     "tool_call>\n<tool_call>\n{\"name\":\"weather\",\"arguments\":{\"city\":\"a\"}}\n</tool_call>\n",
     "Let me see.",
     {{"time", "{}"}, {"weather", R"({"city":"a"})"}}},
    {"arguments as text",
     &kHermesCalls,
     R"(<tool_call>{"name":"time","arguments":"{\"a\":1}"}</tool_call>)",
     "",
     {{"time", R"({"a":1})"}}},
    {"the end is missing", &kHermesCalls, R"(<tool_call>{"name":"time","arguments":{}})", "", {{"time", "{}"}}},
    {"broken JSON", &kHermesCalls, "<tool_call>{\"name\": ", "<tool_call>{\"name\": ", {}},
    {"no call", &kHermesCalls, "a < b and <tool is a word", "a < b and <tool is a word", {}},
    {"an end like a beginning", &kHermesCalls, "text <tool_ca", "text <tool_ca", {}},
    {"nothing but blanks", &kHermesCalls, " \n", " \n", {}},
    {"Llama 3",
     &kLlama3Calls,
     R"({"name": "weather", "parameters": {"city": "a"}})",
     "",
     {{"weather", R"({"city":"a"})"}}},
    {"with its tag, two",
     &kLlama3Calls,
     R"(<|python_tag|>{"name": "time", "parameters": {}}; {"name": "time", "parameters": {"x": 2}})",
     "",
     {{"time", "{}"}, {"time", R"({"x":2})"}}},
    {"JSON that is no call", &kLlama3Calls, R"({"answer": 42})", R"({"answer": 42})", {}},
    {"text with braces",
     &kLlama3Calls,
     R"(So {"name": "time", "parameters": {}})",
     R"(So {"name": "time", "parameters": {}})",
     {}},
    {"Mistral",
     &kMistralCalls,
     R"([TOOL_CALLS] [{"name": "weather", "arguments": {"city": "]"}}, {"name": "time", "arguments": {}}])",
     "",
     {{"weather", R"({"city":"]"})"}, {"time", "{}"}}},
    {"later Mistral",
     &kMistralCalls,
     R"(Well.[TOOL_CALLS]weather[ARGS]{"city": "a"}[TOOL_CALLS]time[CALL_ID]123456789[ARGS]{})",
     "Well.",
     {{"weather", R"({"city": "a"})"}, {"time", "{}"}}},
    {"XML",
     &kXmlCalls,
     "<tool_call>\n<function=weather>\n<parameter=city>\n12\n</parameter>\n<parameter=days>\n3\n</parameter>\n</"
     "function>\n</tool_call>",
     "",
     {{"weather", R"({"city":"12","days":3})"}}},
};

TEST(ToolCallsTest, TellsCallsFromTextWhereverPiecesAreCut) {
  for (const Case& c : kCases)
    for (size_t step : {size_t{1}, size_t{3}, size_t{1000}}) {
      CallReader reader(*c.format, kFunctions, true);
      CallReader::Out all;
      const auto add = [&](CallReader::Out out) {
        all.text += out.text;
        for (ToolCall& call : out.calls)
          all.calls.push_back(std::move(call));
      };
      const std::string_view answer = c.answer;
      for (size_t at = 0; at < answer.size(); at += step)
        add(reader.push(answer.substr(at, step)));
      add(reader.finish());
      EXPECT_EQ(all.text, c.text) << c.what << ", step " << step;
      ASSERT_EQ(all.calls.size(), c.calls.size()) << c.what << ", step " << step;
      for (size_t i = 0; i < c.calls.size(); ++i) {
        EXPECT_EQ(all.calls[i].name, c.calls[i].first) << c.what;
        EXPECT_EQ(all.calls[i].arguments, c.calls[i].second) << c.what;
      }
      EXPECT_EQ(reader.calls(), c.calls.size());
    }
}

TEST(ToolCallsTest, TextIsNotHeldBackBeyondNeed) {
  CallReader reader(kHermesCalls, kFunctions, true);
  EXPECT_EQ(reader.push("Hello <").text, "Hello ");
  EXPECT_EQ(reader.push("b>").text, "<b>");
  EXPECT_EQ(reader.push("<tool_call>{\"name\":\"time\"}</tool_call>").calls.size(), 1u);
}

TEST(ToolCallsTest, OnlyTheFirstWhereOneIsAllowed) {
  CallReader reader(kHermesCalls, kFunctions, false);
  const std::string call = R"(<tool_call>{"name":"time","arguments":{}}</tool_call>)";
  EXPECT_EQ(reader.push(call + call).calls.size(), 1u);
  EXPECT_EQ(reader.calls(), 1u);
}

TEST(ToolCallsTest, TemplatesSayWhichFormat) {
  EXPECT_EQ(find_call_format("… <tool_call>\n{\"name\": <function-name>} …"), &kHermesCalls);
  EXPECT_EQ(find_call_format("… <tool_call>\n<function=example>\n<parameter=p>"), &kXmlCalls);
  EXPECT_EQ(find_call_format("'[TOOL_CALLS] ['"), &kMistralCalls);
  EXPECT_EQ(find_call_format("<|start_header_id|> {\"name\": …, \"parameters\": …}"), &kLlama3Calls);
  EXPECT_EQ(find_call_format("<|im_start|>"), nullptr);
}

TEST(ToolCallsTest, ReferencesOfParametersStayRight) {
  const std::vector<Function> functions = {
      {"f", Json::parse(R"({"$defs":{"A":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/A"}}})")}};
  EXPECT_THAT(call_rules(functions, "arguments"), HasSubstr(R"("$ref":"#/properties/arguments/$defs/A")"));
}

} // namespace
} // namespace cortiq::serve
