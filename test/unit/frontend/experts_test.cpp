// Expert layers from a description: what reads what in the two forms, and stacks cut into weights.

#include <deque>
#include <gtest/gtest.h>

#include "compiler/frontend/DecoderBuilder.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

namespace cortiq::compiler {
namespace {

constexpr int64_t kHidden = 8, kWidth = 6, kExperts = 3, kVocab = 5;

/// A model of one layer whose tensors are zeros.
class Description {
public:
  Description() {
    model.architecture = "test";
    model.hidden = kHidden;
    model.vocab = kVocab;
    model.trainedContext = 16;
    model.eps = 1e-6;
    model.attentionScale = 1;
    model.ropes.emplace_back();
    LayerDescription layer;
    layer.heads = layer.kvHeads = 1;
    layer.headDim = layer.vDim = kHidden;
    layer.feedForward = FeedForward::kExperts;
    layer.routing = {.experts = kExperts, .topK = 2};
    model.layers.push_back(layer);
    add("model.embed_tokens.weight", {kVocab, kHidden});
    for (const char* name : {"q", "k", "v", "o"})
      add(layerName(0, "self_attn." + std::string(name) + "_proj.weight"), {kHidden, kHidden});
    add(layerName(0, "mlp.gate.weight"), {kExperts, kHidden});
    for (int e = 0; e < kExperts; ++e)
      block("mlp.experts." + std::to_string(e));
  }

  void add(const std::string& name, const std::vector<int64_t>& shape) {
    ASSERT_TRUE(addWeight(model, name, {&tensor(name, {shape.begin(), shape.end()}), shape}).ok());
  }
  void block(const std::string& stem) {
    for (const char* part : {"gate", "up"})
      add(layerName(0, stem + "." + part + "_proj.weight"), {kWidth, kHidden});
    add(layerName(0, stem + ".down_proj.weight"), {kHidden, kWidth});
  }
  formats::Tensor& tensor(const std::string& name, const std::vector<uint64_t>& shape,
                          formats::CodecId codec = formats::CodecId::kF32) {
    uint64_t values = 1;
    for (uint64_t n : shape)
      values *= n;
    bytes_.emplace_back(values * sizeof(float));
    formats::Tensor& tensor = tensors_.emplace_back();
    tensor.name = name;
    tensor.codec = &formats::codec_info(codec);
    tensor.shape = shape;
    tensor.data = bytes_.back();
    return tensor;
  }

  mlir::OwningOpRef<mlir::ModuleOp> build() {
    auto module = buildModule(context_, model);
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
    return module;
  }

  ModelDescription model;

private:
  mlir::MLIRContext context_;
  std::deque<formats::Tensor> tensors_;
  std::deque<std::vector<uint8_t>> bytes_;
};

template <class Op>
Op only(mlir::ModuleOp module) {
  Op found;
  module.walk([&](Op op) {
    EXPECT_FALSE(found);
    found = op;
  });
  EXPECT_TRUE(found);
  return found;
}

/// The norm that gives `value`, and the name of its weight; "" for a norm without factors.
std::pair<cmf::RmsNormOp, std::string> normOf(mlir::Value value) {
  auto norm = value.getDefiningOp<cmf::RmsNormOp>();
  EXPECT_TRUE(norm);
  return {norm, norm.getWeight() ? norm.getWeight().getDefiningOp<cmf::WeightOp>().getName().str() : ""};
}

TEST(Experts, SharedExpertStandsBesideTheRoutedOnes) {
  Description description;
  description.block("mlp.shared_expert");
  description.add(layerName(0, "mlp.shared_expert_gate.weight"), {1, kHidden});
  auto module = description.build();
  auto experts = only<cmf::MoeExpertsOp>(*module);
  EXPECT_EQ(experts.getGates().size(), size_t(kExperts));
  auto gate = only<cmf::GateOp>(*module);
  auto sum = llvm::cast<cmf::AddOp>(*experts.getResult().user_begin());
  EXPECT_EQ(sum.getB(), gate.getResult());
  EXPECT_EQ(only<cmf::MoeRouteOp>(*module).getLogits().getDefiningOp<cmf::MatmulOp>().getX(), experts.getX());
}

// CMF specification 3.8: router and experts read the residual stream, each through a norm of its own.
TEST(Experts, DualBranchReadsTheResidualStream) {
  for (const bool scaled : {false, true}) {
    Description description;
    description.model.layers[0].feedForward = FeedForward::kDualExperts;
    description.block("mlp");
    for (const char* norm :
         {"post_feedforward_layernorm_1", "pre_feedforward_layernorm_2", "post_feedforward_layernorm_2"})
      description.add(layerName(0, norm + std::string(".weight")), {kHidden});
    if (scaled)
      description.add(layerName(0, "mlp.per_expert_scale"), {kExperts});
    auto module = description.build();
    auto route = only<cmf::MoeRouteOp>(*module);
    auto experts = only<cmf::MoeExpertsOp>(*module);
    EXPECT_EQ(bool(route.getExpertScales()), scaled);
    const auto [input, inputName] = normOf(experts.getX());
    EXPECT_EQ(inputName, "model.layers.0.pre_feedforward_layernorm_2.weight");
    mlir::Value routerX = route.getLogits().getDefiningOp<cmf::MatmulOp>().getX();
    if (scaled) {
      const auto [norm, name] = normOf(routerX);
      EXPECT_EQ(name, "");
      routerX = cmf::RmsNormOp(norm).getX();
    }
    EXPECT_EQ(routerX, cmf::RmsNormOp(input).getX());
    EXPECT_TRUE(routerX.getDefiningOp<cmf::AddOp>()) << "the stream behind attention";
    const auto [output, outputName] = normOf(llvm::cast<cmf::RmsNormOp>(*experts.getResult().user_begin()));
    EXPECT_EQ(outputName, "model.layers.0.post_feedforward_layernorm_2.weight");
    auto sum = llvm::cast<cmf::AddOp>(*cmf::RmsNormOp(output).getResult().user_begin());
    EXPECT_EQ(normOf(sum.getA()).second, "model.layers.0.post_feedforward_layernorm_1.weight");
  }
}

TEST(Experts, StacksAreCutByExpertAndPart) {
  Description description;
  ModelDescription& model = description.model;
  const formats::Tensor& stack = description.tensor("stack", {kExperts, 2 * kWidth, kHidden});
  ASSERT_TRUE(addExpertStack(model, stack, "m", "up_proj.weight", kExperts, 2 * kWidth, kWidth, kWidth, kHidden).ok());
  const WeightRef* last = model.find("m.experts.2.up_proj.weight");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->first, 2 * 2 * kWidth + kWidth);
  EXPECT_EQ(last->shape, (std::vector<int64_t>{kWidth, kHidden}));
  EXPECT_FALSE(model.find("m.experts.3.up_proj.weight"));
  const formats::Tensor& biases = description.tensor("biases", {kExperts, kWidth});
  ASSERT_TRUE(addExpertStack(model, biases, "m", "up_proj.bias", kExperts, kWidth, 0, kWidth, 0).ok());
  EXPECT_EQ(model.find("m.experts.1.up_proj.bias")->first, kWidth);
  EXPECT_FALSE(addExpertStack(model, stack, "m", "up_proj.weight", kExperts, kWidth, 0, kWidth, kHidden).ok());
}

} // namespace
} // namespace cortiq::compiler
