#include "compiler/emit/shared_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dialects/CMF/IR/CMF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace cortiq::compiler {
namespace {

using testing::HasSubstr;

class SharedWeights : public testing::Test {
protected:
  SharedWeights() { context_.loadDialect<cmf::CMFDialect, kernel::KernelDialect>(); }

  /// What a program with weights `first` and one with weights `second` say of each other.
  std::string compare(const std::string& first, const std::string& second) {
    const auto a = mlir::parseSourceString<mlir::ModuleOp>(first, &context_);
    const auto b = mlir::parseSourceString<mlir::ModuleOp>(second, &context_);
    EXPECT_TRUE(a && b);
    const TargetProgram programs[] = {{*a, nullptr}, {*b, nullptr}};
    const Status status = checkSharedWeights(programs);
    EXPECT_TRUE(status.ok() || exit_code(status) == 2);
    return status.message();
  }

  mlir::MLIRContext context_;
};

TEST_F(SharedWeights, SayTheFirstDifference) {
  const std::string norm = "kernel.weight @norm f32 verbatim 1 x 32\n", w = "kernel.weight @w q8_0 r16 20 x 32\n";
  EXPECT_EQ(compare(norm + w, norm + w), "");
  EXPECT_THAT(compare(norm + w, norm + "kernel.weight @w q8_0 verbatim 20 x 32\n"),
              HasSubstr("they store weight 'w' as r16 and as verbatim; compile them apart"));
  EXPECT_THAT(compare(norm + w, norm), HasSubstr("they read 2 and 1 weights"));
  EXPECT_THAT(compare(norm + w, w + norm), HasSubstr("different bytes for weight 'norm'"));
  EXPECT_THAT(compare(norm + w, norm + "kernel.weight @w q8_0 r16 16 x 32\n"), HasSubstr("for weight 'w'"));
}

} // namespace
} // namespace cortiq::compiler
