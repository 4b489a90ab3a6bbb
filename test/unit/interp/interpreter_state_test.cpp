// However a sequence is cut into batches, its logits are the same; forgetting restores; the cache of weights is only
// that.

#include "dialects/CMF/Interp/Interpreter.h"

#include <gtest/gtest.h>

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/unit/interp/memory_weights.h"
#include "test/unit/interp/small_decoder.h"

namespace cortiq::cmf {
namespace {

class InterpreterState : public testing::Test {
protected:
  void SetUp() override {
    context_.loadDialect<CMFDialect, mlir::func::FuncDialect>();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(smallDecoder({.headNorms = true, .window = true}), &context_);
    ASSERT_TRUE(module_);
  }

  Interpreter engine(InterpreterOptions options = {}) {
    StatusOr<Interpreter> made = Interpreter::create(*module_, weights_, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }

  static std::vector<float> forward(Interpreter& engine, std::vector<uint32_t> tokens, bool all = true) {
    StatusOr<std::span<const float>> logits = engine.forward(tokens, all);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    return logits.ok() ? std::vector<float>(logits->begin(), logits->end()) : std::vector<float>();
  }

  const std::vector<uint32_t> tokens_ = {3, 17, 0, 23, 8, 8, 11};
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  MemoryWeights weights_;
};

TEST_F(InterpreterState, BatchEqualsTokenByToken) {
  Interpreter whole = engine(), single = engine();
  const std::vector<float> expected = forward(whole, tokens_);
  ASSERT_EQ(expected.size(), tokens_.size() * kSmallVocab);
  std::vector<float> got;
  for (uint32_t token : tokens_) {
    const std::vector<float> logits = forward(single, {token}, /*all=*/false);
    got.insert(got.end(), logits.begin(), logits.end());
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(single.position(), tokens_.size());
}

TEST_F(InterpreterState, LastLogitsAreThoseOfTheLastToken) {
  Interpreter all = engine(), last = engine();
  const std::vector<float> expected = forward(all, tokens_);
  EXPECT_EQ(forward(last, tokens_, /*all=*/false), std::vector<float>(expected.end() - kSmallVocab, expected.end()));
}

TEST_F(InterpreterState, RewindForgets) {
  Interpreter e = engine();
  const std::vector<float> expected = forward(e, tokens_);
  e.rewind(2);
  EXPECT_EQ(e.position(), 2u);
  forward(e, {1, 1, 1});
  e.rewind(2);
  const std::vector<float> again = forward(e, std::vector<uint32_t>(tokens_.begin() + 2, tokens_.end()));
  EXPECT_EQ(again, std::vector<float>(expected.begin() + 2 * kSmallVocab, expected.end()));
  e.reset();
  EXPECT_EQ(forward(e, tokens_), expected);
}

TEST_F(InterpreterState, CacheSizeDoesNotMatter) {
  Interpreter cached = engine(), uncached = engine({.cacheBytes = 0});
  EXPECT_EQ(forward(cached, tokens_), forward(uncached, tokens_));
}

} // namespace
} // namespace cortiq::cmf
