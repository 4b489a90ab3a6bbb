// Holds tokenizers and templates against ids and texts that independent implementations made.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/text/chat_template.h"
#include "runtime/text/text_section.h"
#include "runtime/text/text_source.h"

namespace cortiq::runtime::text {
namespace {

using Json = nlohmann::json;

class GoldenTest : public ::testing::Test {
protected:
  void SetUp() override {
    const char* fixtures = std::getenv("CORTIQ_FIXTURES");
    if (fixtures == nullptr || *fixtures == '\0')
      GTEST_SKIP() << "CORTIQ_FIXTURES is not set: it names the folder with golden/text";
    root_ = std::filesystem::path(fixtures) / "golden" / "text";
  }

  Json read(const std::filesystem::path& path) const {
    std::ifstream file(root_ / path);
    EXPECT_TRUE(file.good()) << path;
    return Json::parse(file);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(root_ / "tokenizers"))
      if (std::string name = entry.path().filename(); name.find(".ids.") == std::string::npos)
        found.push_back(name.substr(0, name.size() - std::string(".json").size()));
    EXPECT_FALSE(found.empty());
    return found;
  }

  /// Texts of the corpus in the order of the ids files; byte cases as their replaced text.
  std::vector<std::string> texts() const {
    std::vector<std::string> found;
    Json corpus = read("corpus.json");
    for (const Json& text : corpus["texts"])
      found.push_back(text["text"]);
    for (const Json& bytes : corpus["byte_cases"])
      found.push_back(bytes["lossy"]);
    return found;
  }

  std::filesystem::path root_;
};

/// The tokenizer as an artifact carries it.
Tokenizer from_section(const TextSource& source) {
  auto section = pack_text_section(source.tokenizer_json, source.config);
  EXPECT_TRUE(section.ok()) << section.status().message();
  auto model = open_text_section(*section);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model->tokenizer;
}

void expect_case(const Tokenizer& tokenizer, const std::string& text, const Json& expected) {
  std::vector<uint32_t> ids = expected["ids"];
  EXPECT_EQ(*tokenizer.encode(text, {false, true}), ids) << text;
  EXPECT_EQ(*tokenizer.encode(text, {true, true}), expected.value("ids_special", ids)) << text;
  EXPECT_EQ(*tokenizer.encode(text, {false, false}), expected.value("ids_no_parse", ids)) << text;
}

TEST_F(GoldenTest, TokenizerJsonGivesTheRecordedIds) {
  const std::vector<std::string> corpus = texts();
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    auto source = load_text_source(root_ / "tokenizers" / (name + ".json"));
    ASSERT_TRUE(source.ok()) << source.status().message();
    auto plain = Tokenizer::from_bytes(source->tokenizer_json);
    ASSERT_TRUE(plain.ok());
    Tokenizer packed = from_section(*source);
    EXPECT_EQ(plain->vocab_size(), packed.vocab_size());
    EXPECT_EQ(plain->special_ids(), packed.special_ids());
    const Json recorded = read("tokenizers/" + name + ".ids.json");
    ASSERT_EQ(recorded["cases"].size(), corpus.size());
    for (size_t i = 0; i < corpus.size(); ++i) {
      const Json& expected = recorded["cases"][i];
      for (const Tokenizer& tokenizer : {*plain, packed}) {
        expect_case(tokenizer, corpus[i], expected);
        std::vector<uint32_t> ids = expected.value("ids_special", expected["ids"]);
        EXPECT_EQ(*tokenizer.decode(ids, true), expected["decode"].get<std::string>());
        EXPECT_EQ(*tokenizer.decode(ids, false), expected["decode_keep"].get<std::string>());
      }
    }
  }
}

TEST_F(GoldenTest, StreamsReleaseCharactersAsSoonAsTheyAreComplete) {
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    auto source = load_text_source(root_ / "tokenizers" / (name + ".json"));
    ASSERT_TRUE(source.ok()) << source.status().message();
    for (const Tokenizer& tokenizer : {*Tokenizer::from_bytes(source->tokenizer_json), from_section(*source)}) {
      StreamDecoder decoder(tokenizer);
      const Json recorded = read("tokenizers/" + name + ".ids.json");
      for (const Json& stream : recorded["streams"]) {
        for (size_t i = 0; i < stream["ids"].size(); ++i)
          EXPECT_EQ(*decoder.push(stream["ids"][i]), stream["deltas"][i].get<std::string>())
              << stream["id"] << " " << i;
        EXPECT_EQ(*decoder.flush(), stream["flush"].get<std::string>()) << stream["id"];
      }
    }
  }
}

TEST_F(GoldenTest, GgufMetadataGivesTheSameIds) {
  const std::vector<std::string> corpus = texts();
  const Json corpus_json = read("corpus.json");
  std::map<std::pair<std::string, std::string>, std::string> disputed;
  const Json disagreements = read("disagreements.json");
  for (const Json& row : disagreements["rows"])
    disputed[{row["tokenizer"], row["id"]}] = row["gguf_expect"];
  size_t files = 0;
  for (const std::string& name : names()) {
    const auto path = root_ / "gguf" / (name + ".gguf");
    if (!std::filesystem::exists(path))
      continue;
    ++files;
    SCOPED_TRACE(name);
    auto source = load_text_source(path);
    ASSERT_TRUE(source.ok()) << source.status().message();
    Tokenizer tokenizer = from_section(*source);
    const Json recorded = read("tokenizers/" + name + ".ids.json");
    for (size_t i = 0; i < corpus_json["texts"].size(); ++i) {
      // Rows where implementations disagree and the metadata cannot say who is right are left to the recorded judge.
      auto rule = disputed.find({name, corpus_json["texts"][i]["id"]});
      if (rule == disputed.end() || rule->second == "hf")
        expect_case(tokenizer, corpus[i], recorded["cases"][i]);
    }
  }
  EXPECT_GT(files, 0u);
}

TEST_F(GoldenTest, TemplatesRenderToTheByte) {
  const Json templates = read("templates.json");
  const std::string now = templates["now"];
  // The order of keys is part of the result, so the variables are taken from the file as an ordered document.
  std::ifstream file(root_ / "templates.json");
  const nlohmann::ordered_json ordered = nlohmann::ordered_json::parse(file);
  for (const auto& c : ordered["cases"]) {
    SCOPED_TRACE(c["id"].get<std::string>());
    const std::string variables = c.contains("variables") ? c["variables"].dump() : "{}";
    auto text = render_chat_template(c["template"].get<std::string>(), variables, now);
    if (c.contains("output"))
      EXPECT_EQ(text.ok() ? *text : text.status().message(), c["output"].get<std::string>());
    else
      EXPECT_FALSE(text.ok());
  }
  for (const auto& c : ordered["hostile"]) {
    auto text = render_chat_template(c["template"].get<std::string>(), "{\"messages\":[]}", now);
    if (text.ok())
      EXPECT_LT(text->size(), 1u << 20) << c["id"];
    else
      EXPECT_FALSE(text.status().message().empty()) << c["id"];
  }
}

} // namespace
} // namespace cortiq::runtime::text
