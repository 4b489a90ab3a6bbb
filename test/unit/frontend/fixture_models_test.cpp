// The reference interpreter on model files against logits and tokens that independent implementations computed.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/LoadModel.h"
#include "dialects/CMF/Interp/Interpreter.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

namespace cortiq::compiler {
namespace {

// What f32 evaluations in another order of summation differ by, with room: the expected values come from f32 and f64
// implementations that agree within 1e-5.
constexpr double kRelativeRms = 2e-4;

struct Fixture {
  const char* folder;
  const char* name;
  const char* file;              ///< with its ending; split models name their first part
  const char* unreadTensor = ""; ///< part of the name of the tensor that the user is warned of
};

void PrintTo(const Fixture& fixture, std::ostream* os) {
  *os << fixture.folder << '/' << fixture.name;
}

class FixtureModels : public testing::TestWithParam<Fixture> {};

nlohmann::json readJson(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
}

std::vector<float> readFloats(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty())
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

uint32_t argmax(std::span<const float> logits) {
  return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TEST_P(FixtureModels, LogitsAndTokens) {
  const char* root = std::getenv("CORTIQ_FIXTURES");
  if (!root || !*root)
    GTEST_SKIP() << "CORTIQ_FIXTURES does not name the folder of fixtures";
  const std::string stem = std::string(root) + "/" + GetParam().folder + "/" + GetParam().name;
  nlohmann::json expect = readJson(stem + ".expect.json");
  ASSERT_TRUE(expect.is_object()) << stem;
  if (expect.contains("cases"))
    expect = expect["cases"][0];

  mlir::MLIRContext context;
  StatusOr<LoadedModel> model = loadModel(std::string(root) + "/" + GetParam().folder + "/" + GetParam().file, context);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*model->module)));
  const std::string unread = GetParam().unreadTensor;
  ASSERT_EQ(model->warnings.size(), unread.empty() ? 0u : 1u) << model->warnings[0];
  if (!unread.empty())
    EXPECT_NE(model->warnings[0].find(unread), std::string::npos) << model->warnings[0];
  StatusOr<cmf::Interpreter> interpreter = cmf::Interpreter::create(*model->module, *model->weights);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status().message();

  const std::vector<uint32_t> prompt = expect["prompt_ids"], greedy = expect["greedy_ids"];
  StatusOr<std::span<const float>> logits = interpreter->forward(prompt, /*allLogits=*/true);
  ASSERT_TRUE(logits.ok()) << logits.status().message();
  const uint64_t vocab = interpreter->vocab();
  ASSERT_EQ(logits->size(), prompt.size() * vocab);

  if (expect.contains("logits_file")) {
    const std::vector<float> expected = readFloats(stem + ".logits.f32.bin");
    const std::vector<size_t> positions = expect["logits_file"]["positions"];
    ASSERT_EQ(expected.size(), positions.size() * vocab);
    double error = 0, size = 0;
    for (size_t i = 0; i < positions.size(); ++i)
      for (uint64_t v = 0; v < vocab; ++v) {
        const double want = expected[i * vocab + v];
        error += std::pow((*logits)[positions[i] * vocab + v] - want, 2);
        size += want * want;
      }
    EXPECT_LE(std::sqrt(error / size), kRelativeRms);
  }

  std::vector<uint32_t> tokens = {argmax(logits->last(vocab))};
  while (tokens.size() < greedy.size()) {
    logits = interpreter->forward(std::span(tokens).last(1), /*allLogits=*/false);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    tokens.push_back(argmax(*logits));
  }
  EXPECT_EQ(tokens, greedy);
}

INSTANTIATE_TEST_SUITE_P(
    Cmf, FixtureModels,
    testing::Values(Fixture{"models", "deepseek_v2-q4t", "deepseek_v2-q4t.cmf"},
                    Fixture{"models", "deepseek_v3-f16", "deepseek_v3-f16.cmf", "e_score_correction_bias"},
                    Fixture{"models", "defrag", "defrag.cmf"}, Fixture{"models", "gemma2-q8", "gemma2-q8.cmf"},
                    Fixture{"models", "gemma3-q4tp", "gemma3-q4tp.cmf"},
                    Fixture{"models", "granite-q4tp", "granite-q4tp.cmf"},
                    Fixture{"models", "hunyuan-q8_2f", "hunyuan-q8_2f.cmf"},
                    Fixture{"models", "lfm2-q8", "lfm2-q8.cmf"}, Fixture{"models", "llama-f16", "llama-f16.cmf"},
                    Fixture{"models", "llama-mixed", "llama-mixed.cmf"}, Fixture{"models", "llama-q8", "llama-q8.cmf"},
                    Fixture{"models", "llama_h256-q4tp", "llama_h256-q4tp.cmf"},
                    Fixture{"models", "llama_tied-q4t", "llama_tied-q4t.cmf"},
                    Fixture{"models", "mistral-q4", "mistral-q4.cmf"}, Fixture{"models", "phi3-q4tp", "phi3-q4tp.cmf"},
                    Fixture{"models", "qwen2-q8_2f", "qwen2-q8_2f.cmf"}, Fixture{"models", "qwen3-q4", "qwen3-q4.cmf"},
                    Fixture{"models", "qwen3-q4t", "qwen3-q4t.cmf"}, Fixture{"models", "qwen3-q4tp", "qwen3-q4tp.cmf"},
                    Fixture{"models", "qwen3_5-q4tp", "qwen3_5-q4tp.cmf"}, Fixture{"models", "signed", "signed.cmf"}));

INSTANTIATE_TEST_SUITE_P(Gguf, FixtureModels,
                         testing::Values(Fixture{"models-gguf", "deepseek2-q8_0", "deepseek2-q8_0.gguf"},
                                         Fixture{"models-gguf", "gemma2-q5_k", "gemma2-q5_k.gguf"},
                                         Fixture{"models-gguf", "gemma3-q4_k", "gemma3-q4_k.gguf"},
                                         Fixture{"models-gguf", "gpt-oss-mxfp4", "gpt-oss-mxfp4.gguf"},
                                         Fixture{"models-gguf", "granite-q4_0", "granite-q4_0.gguf"},
                                         Fixture{"models-gguf", "olmo2-q8_0", "olmo2-q8_0.gguf"},
                                         Fixture{"models-gguf", "starcoder2-q4_1", "starcoder2-q4_1.gguf"},
                                         Fixture{"models-gguf", "lfm2-q8_0", "lfm2-q8_0.gguf"},
                                         Fixture{"models-gguf", "llama-bf16", "llama-bf16.gguf"},
                                         Fixture{"models-gguf", "llama-f16", "llama-f16.gguf"},
                                         Fixture{"models-gguf", "llama-q4_0", "llama-q4_0.gguf"},
                                         Fixture{"models-gguf", "llama-q4_k_m", "llama-q4_k_m.gguf"},
                                         Fixture{"models-gguf", "llama-split", "llama-split-00001-of-00002.gguf"},
                                         Fixture{"models-gguf", "qwen2-iq4_nl", "qwen2-iq4_nl.gguf"},
                                         Fixture{"models-gguf", "qwen2-q5_1", "qwen2-q5_1.gguf"},
                                         Fixture{"models-gguf", "qwen3-q5_0", "qwen3-q5_0.gguf"},
                                         Fixture{"models-gguf", "qwen35-q6_k", "qwen35-q6_k.gguf"}));

} // namespace
} // namespace cortiq::compiler
