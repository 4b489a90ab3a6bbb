#include "compiler/emit/program_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/artifact/kernel_abi.h"
#include "formats/layout/layout.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace cortiq::compiler {
namespace {

using testing::ElementsAre;

constexpr uint32_t kNone = 0xFFFFFFFF;

constexpr char kModule[] = R"(
kernel.weight @embed q8_0 r16 64 x 32
kernel.weight @norm f32 verbatim 1 x 32
kernel.weight @bias f32 verbatim 1 x 20
kernel.weight @w q8_0 r16 20 x 32
kernel.define @gemv_f32_q8a_q8_0_r16_k32_1x16_bias_v3 <q8_0, r16, k = 32, tile = 1x16, act = q8a, isa = "x86-64-v3", bias>
kernel.define @gemv_f32_q8a_q8_0_r16_k32_1x4_bias_v3 <q8_0, r16, k = 32, tile = 1x4, act = q8a, isa = "x86-64-v3", bias>
kernel.kv_layer @kv0 {kv_heads = 2, k_dim = 8, v_dim = 8, window = 16}
kernel.rope_table @rope0 [1.0, 0.5] {magnitude = 2.0 : f32}
kernel.program @program attributes {arena_bytes_per_token = 4096 : i64} {
  %x = kernel.alloc {offset = 0 : i64} : !kernel.buffer<f32, 32>
  %a = kernel.alloc {offset = 128 : i64} : !kernel.buffer<q8a, 32>
  %y = kernel.alloc {offset = 256 : i64} : !kernel.buffer<f32, 20>
  %k = kernel.alloc {offset = 384 : i64} : !kernel.buffer<f32, 16>
  kernel.stage "embed" {
    kernel.embed @embed -> %x {scale = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.stage "layer 0: norm" {
    kernel.norm %x weight(@norm) act(%a : !kernel.buffer<q8a, 32>) {eps = 0.5 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.stage "layer 0: prep" {
    kernel.attention_prep %x, %k, %k cache(@kv0) rope(@rope0) {heads = 4 : i64, head_dim = 8 : i64}
      : !kernel.buffer<f32, 32>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>
  }
  kernel.stage head "head" {
    kernel.matmul {
      kernel.call @w(%a) bias(@bias) -> %y <q8_0, r16, k = 32, act = q8a, isa = "x86-64-v3", bias>
        kernels [@gemv_f32_q8a_q8_0_r16_k32_1x16_bias_v3] tails [@gemv_f32_q8a_q8_0_r16_k32_1x4_bias_v3]
        : (!kernel.buffer<q8a, 32>) -> !kernel.buffer<f32, 20>
    }
  }
  kernel.return %y : !kernel.buffer<f32, 20>
})";

class ProgramBuilderTest : public testing::Test {
protected:
  ProgramBuilderTest() {
    context_.loadDialect<kernel::KernelDialect>();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(kModule, &context_);
  }
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(ProgramBuilderTest, TurnsSymbolsIntoIndices) {
  ASSERT_TRUE(module_);
  auto program = buildProgram(*module_);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->arena_bytes_per_token, 4096u);
  EXPECT_EQ(program->logits, 2u);
  ASSERT_EQ(program->buffers.size(), 4u);
  EXPECT_EQ(program->buffers[1]->kind, artifact::BufferKind::Q8Act);
  EXPECT_EQ(program->buffers[1]->bytes_per_token, formats::q8_act_layout(32).bytes);
  EXPECT_EQ(program->buffers[1]->offset_per_token, 128u);
  EXPECT_EQ(program->buffers[2]->bytes_per_token, formats::f32_act_bytes(20));

  ASSERT_EQ(program->stages.size(), 4u);
  EXPECT_FALSE(program->stages[0]->head);
  EXPECT_TRUE(program->stages[3]->head);
  EXPECT_EQ(program->stages[1]->name, "layer 0: norm");

  const artifact::EmbedOpT* embed = program->stages[0]->calls[0]->op.AsEmbedOp();
  ASSERT_NE(embed, nullptr);
  EXPECT_EQ(embed->weight, 0u);
  EXPECT_EQ(embed->scale, 2.0f);

  const artifact::NormOpT* norm = program->stages[1]->calls[0]->op.AsNormOp();
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->weight, 1u);
  EXPECT_EQ(norm->act_out, 1u);
  EXPECT_EQ(norm->out, kNone);
  EXPECT_EQ(norm->add, kNone);

  const artifact::AttentionPrepOpT* prep = program->stages[2]->calls[0]->op.AsAttentionPrepOp();
  ASSERT_NE(prep, nullptr);
  EXPECT_EQ(prep->layer, 0u);
  EXPECT_EQ(prep->rope, 0u);
  EXPECT_EQ(prep->q_norm, kNone);

  const artifact::MatmulOpT* matmul = program->stages[3]->calls[0]->op.AsMatmulOp();
  ASSERT_NE(matmul, nullptr);
  ASSERT_EQ(matmul->parts.size(), 1u);
  const artifact::MatmulPartT& part = *matmul->parts[0];
  EXPECT_EQ(part.weight, 3u);
  EXPECT_EQ(part.bias, 2u);
  EXPECT_EQ(part.residual, kNone);
  EXPECT_THAT(part.kernels, ElementsAre(0u));
  EXPECT_THAT(part.tail_kernels, ElementsAre(1u));

  ASSERT_EQ(program->kernels.size(), 2u);
  EXPECT_EQ(program->kernels[1]->rows, 4u);
  EXPECT_EQ(program->kernels[1]->codec, static_cast<uint16_t>(formats::CodecId::kQ8_0));
  EXPECT_TRUE(program->kernels[1]->bias);
  EXPECT_EQ(program->kv_layers[0]->window, 16u);
  EXPECT_EQ(program->rope_tables[0]->magnitude, 2.0f);
  EXPECT_THAT(program->rope_tables[0]->inverse_frequencies, ElementsAre(1.0f, 0.5f));
}

TEST_F(ProgramBuilderTest, SizesTheWeightTable) {
  ASSERT_TRUE(module_);
  auto weights = buildWeightTable(*module_);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  ASSERT_EQ(weights->size(), 4u);
  EXPECT_EQ((*weights)[0]->name, "embed");
  EXPECT_EQ((*weights)[0]->bytes, 64u * 34);
  EXPECT_EQ((*weights)[1]->bytes, 128u);
  EXPECT_EQ((*weights)[3]->layout, static_cast<uint8_t>(formats::LayoutId::kR16));
}

TEST_F(ProgramBuilderTest, RefusesAModuleWithoutAFinishedProgram) {
  auto empty = mlir::parseSourceString<mlir::ModuleOp>("module {}", &context_);
  EXPECT_FALSE(buildProgram(*empty).ok());
}

} // namespace
} // namespace cortiq::compiler
