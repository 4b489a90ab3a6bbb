// Models with flipped bits and cut ends: refused in a sentence, or built into a module that verifies and runs.

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "compiler/frontend/LoadModel.h"
#include "dialects/CMF/Interp/Interpreter.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "test/unit/base/test_files.h"

namespace cortiq::compiler {
namespace {

constexpr int kFlips = 400;

struct Damage {
  const char* file;
  size_t first, last; ///< bytes among which some are flipped: header, keys, directory
};

void PrintTo(const Damage& damage, std::ostream* os) {
  *os << damage.file;
}

class DamagedModels : public testing::TestWithParam<Damage> {
protected:
  // Whether the file was accepted; everything else about it is checked here.
  static bool survives(const std::string& path) {
    mlir::MLIRContext context;
    StatusOr<LoadedModel> model = loadModel(path, context);
    if (!model.ok()) {
      EXPECT_NE(model.status().code(), StatusCode::kInternal) << model.status().message();
      EXPECT_FALSE(model.status().message().empty());
      return false;
    }
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*model->module)));
    StatusOr<cmf::Interpreter> interpreter = cmf::Interpreter::create(*model->module, *model->weights);
    EXPECT_TRUE(interpreter.ok()) << interpreter.status().message();
    if (interpreter.ok()) {
      const StatusOr<std::span<const float>> logits = interpreter->forward(std::vector<uint32_t>{0, 1}, false);
      EXPECT_TRUE(logits.ok()) << logits.status().message();
    }
    return true;
  }
};

TEST_P(DamagedModels, FlippedBits) {
  CORTIQ_NEED_FIXTURES();
  const std::vector<uint8_t> whole = test::read_bytes(test::fixtures() + "/" + GetParam().file);
  ASSERT_GT(whole.size(), GetParam().last);
  test::ScratchFolder folder;
  const std::string path = folder / "damaged";
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < kFlips; ++i) {
    std::vector<uint8_t> bytes = whole;
    for (uint32_t n = 1 + random() % 3; n > 0; --n) {
      const size_t at = GetParam().first + random() % (GetParam().last - GetParam().first);
      bytes[at] ^= static_cast<uint8_t>(1u << (random() % 8));
    }
    test::write_bytes(path, bytes);
    refused += !survives(path);
  }
  EXPECT_GT(refused, 0);
}

TEST_P(DamagedModels, CutEnds) {
  CORTIQ_NEED_FIXTURES();
  const std::vector<uint8_t> whole = test::read_bytes(test::fixtures() + "/" + GetParam().file);
  test::ScratchFolder folder;
  const std::string path = folder / "damaged";
  std::mt19937 random(12);
  for (int i = 0; i < 60; ++i) {
    test::write_bytes(path, std::span(whole).first(random() % whole.size()));
    EXPECT_FALSE(survives(path));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, DamagedModels,
                         testing::Values(Damage{"models/qwen3-q4tp.cmf", 8, 4197},
                                         Damage{"models/gemma3-q4tp.cmf", 8, 6174},
                                         Damage{"models-gguf/llama-q4_k_m.gguf", 0, 730},
                                         Damage{"models-gguf/llama-q4_k_m.gguf", 20200, 21300}));

} // namespace
} // namespace cortiq::compiler
