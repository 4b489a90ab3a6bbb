// The paths of a matrix product: that many tokens share one decoding, and which path is taken.

#include <gtest/gtest.h>

#include <cstddef>

#include "mlir/IR/MLIRContext.h"

#include "codegen/kernels/build_kernel.h"
#include "codegen/kernels/path_cost.h"
#include "formats/artifact/kernel_abi.h"

namespace cortiq::test {
namespace {

using namespace codegen;
using formats::KernelArgs;

/// The field of the argument block that a pointer comes from; -1 for none.
int64_t field_of(mlir::Value pointer) {
  while (true) {
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(pointer)) {
      auto loop = llvm::dyn_cast<vec::LoopOp>(argument.getOwner()->getParentOp());
      if (!loop || argument.getArgNumber() == 0)
        return -1;
      pointer = loop.getInitArgs()[argument.getArgNumber() - 1];
      continue;
    }
    mlir::Operation* op = pointer.getDefiningOp();
    if (auto field = llvm::dyn_cast<vec::LoadPtrOp>(op))
      return field.getOffset();
    if (auto loop = llvm::dyn_cast<vec::LoopOp>(op)) {
      pointer = loop.getInitArgs()[llvm::cast<mlir::OpResult>(pointer).getResultNumber()];
      continue;
    }
    if (!llvm::isa<vec::PtrAddOp, vec::PtrOffsetOp>(op))
      return -1;
    pointer = op->getOperand(0);
  }
}

bool over_tokens(vec::LoopOp loop) {
  auto count = loop.getHi().getDefiningOp<vec::LoadIndexOp>();
  return count && count.getOffset() == offsetof(KernelArgs, tokens);
}

class PathsTest : public ::testing::TestWithParam<const formats::Codec*> {};

/// Kernels for many tokens read weights in front of their loops over tokens only: each block is decoded once, however
/// many tokens there are.
TEST_P(PathsTest, ManyTokensShareOneDecoding) {
  mlir::MLIRContext context;
  for (Arm arm : {Arm::kFast, Arm::kExact})
    for (VectorUnit unit : {VectorUnit{.lanes = 8}, VectorUnit{.lanes = 16, .dot4 = true}}) {
      const KernelSpec spec{.codec = GetParam()->id, .k = 512, .tokens = kManyTokens, .arm = arm};
      if (!can_build(spec).ok())
        continue;
      auto kernel = build_kernel(context, spec, unit);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      unsigned loops = 0, of_weights = 0, of_activations = 0, of_weights_inside = 0;
      (*kernel)->walk([&](vec::LoopOp loop) { loops += over_tokens(loop); });
      (*kernel)->walk([&](mlir::Operation* op) {
        if (!llvm::isa<vec::LoadOp, vec::LoadSplatOp, vec::GatherOp>(op))
          return;
        const int64_t field = field_of(op->getOperand(0));
        bool inside = false;
        for (auto loop = op->getParentOfType<vec::LoopOp>(); loop; loop = loop->getParentOfType<vec::LoopOp>())
          inside |= over_tokens(loop);
        of_weights += field == offsetof(KernelArgs, weights);
        of_weights_inside += inside && field == offsetof(KernelArgs, weights);
        of_activations += inside && field == offsetof(KernelArgs, act);
      });
      EXPECT_EQ(loops, 2u); // products, then results
      EXPECT_GT(of_weights, 0u);
      EXPECT_GT(of_activations, 0u);
      EXPECT_EQ(of_weights_inside, 0u) << kernel_name(spec);
    }
}

std::vector<const formats::Codec*> codecs() {
  std::vector<const formats::Codec*> out;
  for (const formats::Codec& codec : formats::codec_table())
    if (can_build({.codec = codec.id, .k = 512, .tokens = kManyTokens, .arm = Arm::kExact}).ok())
      out.push_back(&codec);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Codecs, PathsTest, ::testing::ValuesIn(codecs()),
                         [](const auto& param) { return std::string(param.param->name); });

PathQuestion question(formats::CodecId codec, Arm arm = Arm::kFast) {
  return {.spec = {.codec = codec, .k = 4096, .arm = arm}, .tile = 4, .room = 1 << 20, .forced = {}};
}

TEST(ChoosePathTest, CostlyCodecsAreMaterialisedFromSomeTokensOn) {
  const PathChoice choice = choose_path(question(formats::CodecId::kIQ2_XXS));
  EXPECT_EQ(choice.path, Path::kMaterialised);
  EXPECT_GE(choice.from_tokens, 5u);
  EXPECT_LT(choice.from_tokens, 32u);
  EXPECT_LT(choice.materialised, choice.fused);
  EXPECT_EQ(choose_path(question(formats::CodecId::kQ8_0)).path, Path::kFused);
}

TEST(ChoosePathTest, NoMoreMemoryIsTakenThanThereIs) {
  PathQuestion q = question(formats::CodecId::kIQ2_XXS, Arm::kExact);
  q.room = materialised_bytes(q.spec);
  EXPECT_EQ(choose_path(q).path, Path::kMaterialised);
  q.room -= 1;
  EXPECT_EQ(choose_path(q).path, Path::kFused);
  EXPECT_NE(choose_path(q).why.find("exceeds"), std::string::npos);
}

TEST(ChoosePathTest, WhatIsAskedForIsTakenWhereItExists) {
  PathQuestion q = question(formats::CodecId::kQ8_0);
  q.forced = Path::kMaterialised;
  EXPECT_EQ(choose_path(q).path, Path::kMaterialised);
  q.forced = Path::kTiles;
  EXPECT_EQ(choose_path(q).path, Path::kFused);
  EXPECT_NE(choose_path(q).why.find("tiles were asked for"), std::string::npos);
  q.tiles = true;
  EXPECT_EQ(choose_path(q).path, Path::kTiles);
  q.forced = Path::kFused;
  EXPECT_EQ(choose_path(q).path, Path::kFused);
  EXPECT_EQ(choose_path(q).from_tokens, 0u);
}

TEST(ChoosePathTest, TilesServeTheFastArmAlone) {
  PathQuestion q = question(formats::CodecId::kIQ2_XXS);
  q.tiles = true;
  q.spec.isa = "amx";
  EXPECT_EQ(choose_path(q).path, Path::kTiles);
  q.spec.arm = Arm::kExact;
  q.tile = 8;
  EXPECT_EQ(choose_path(q).path, Path::kMaterialised);
}

TEST(ChoosePathTest, TargetsWithoutFiguresStayFused) {
  PathQuestion q = question(formats::CodecId::kIQ2_XXS, Arm::kExact);
  q.spec.isa = "armv8";
  EXPECT_EQ(choose_path(q).path, Path::kFused);
  EXPECT_NE(choose_path(q).why.find("no costs were measured"), std::string::npos);
  // What was estimated from the code serves where nothing was measured.
  q.spec.arm = Arm::kFast;
  EXPECT_EQ(choose_path(q).path, Path::kMaterialised);
}

} // namespace
} // namespace cortiq::test
