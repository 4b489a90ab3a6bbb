// Files to refuse: each is refused in one sentence that names what its manifest asks for.

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/LoadModel.h"
#include "mlir/IR/MLIRContext.h"

namespace cortiq::compiler {
namespace {

class BadModels : public testing::Test {
protected:
  void SetUp() override {
    const char* root = std::getenv("CORTIQ_FIXTURES");
    if (!root || !*root)
      GTEST_SKIP() << "CORTIQ_FIXTURES does not name the folder of fixtures";
    root_ = root;
  }

  nlohmann::json manifest(const std::string& folder) const {
    std::ifstream in(root_ + "/" + folder + "/manifest.json");
    return nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  }

  // The sentence that `path` is refused with; empty when it is not.
  static std::string refusal(const std::string& path) {
    mlir::MLIRContext context;
    StatusOr<LoadedModel> model = loadModel(path, context);
    if (model.ok())
      return {};
    EXPECT_NE(model.status().code(), StatusCode::kInternal) << model.status().message();
    EXPECT_EQ(model.status().message().find('\n'), std::string::npos);
    EXPECT_TRUE(model.status().message().starts_with(path) || model.status().message().starts_with("'" + path))
        << model.status().message();
    return model.status().message();
  }

  std::string root_;
};

TEST_F(BadModels, GgufMessagesNameWhatTheManifestAsksFor) {
  // Their fault lies in the tokenizer, whose rules the text library knows; the weights are fine.
  const std::set<std::string> tokenizers = {"unknown_pre.gguf", "unknown_tokenizer.gguf"};
  const nlohmann::json cases = manifest("models-gguf/bad");
  ASSERT_TRUE(cases.is_array());
  for (const nlohmann::json& entry : cases) {
    const std::string file = entry["file"];
    if (tokenizers.contains(file))
      continue;
    const std::string message = refusal(root_ + "/models-gguf/bad/" + file);
    EXPECT_NE(message, "") << file << " is accepted";
    for (const std::string word : entry["must_name"])
      EXPECT_NE(message.find(word), std::string::npos) << file << ": '" << word << "' is not in: " << message;
  }
}

TEST_F(BadModels, CmfFilesAreRefused) {
  const nlohmann::json cases = manifest("models/bad");
  ASSERT_TRUE(cases.is_array());
  for (const nlohmann::json& entry : cases) {
    if (entry["stage"] == "verify")
      continue; // only the hash check, which is asked for separately, finds these
    const std::string file = entry["file"];
    EXPECT_NE(refusal(root_ + "/models/bad/" + file), "") << file << " is accepted";
  }
}

TEST_F(BadModels, StandaloneSkillsAreNoModels) {
  const std::string message = refusal(root_ + "/models/alone-skill.cmf");
  EXPECT_NE(message.find("standalone skill file"), std::string::npos) << message;
}

} // namespace
} // namespace cortiq::compiler
