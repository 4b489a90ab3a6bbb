// The references of a mixture of experts against values worked out by hand, and cmf-fuse-moe, which changes no bit.

#include <cmath>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/Passes.h"
#include "dialects/CMF/Interp/Interpreter.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "test/unit/interp/memory_weights.h"

namespace cortiq::cmf {
namespace {

using testing::FloatNear;
using testing::Pointwise;

constexpr float kRounding = 2e-6f;

std::string tensor(int features, const std::string& element = "f32") {
  return "tensor<?x" + std::to_string(features) + "x" + element + ">";
}

/// A model of `hidden` features and as many tokens whose body goes from %h to %y.
class Model {
public:
  Model(int hidden, int result, const std::string& body) {
    context_.loadDialect<CMFDialect, mlir::func::FuncDialect>();
    const std::string h = std::to_string(hidden), type = "!cmf.weight<" + h + "x" + h + ", f32>";
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "module attributes {cmf.model = {architecture = \"t\", hidden = " + h + ", layers = 1, vocab = " + h +
            ", trained_context = 64}} { func.func @forward(%ids: tensor<?xi32>) -> " + tensor(result) +
            " {\n%e = cmf.weight \"embed\" : " + type + "\n%h = cmf.embed %ids, %e : tensor<?xi32>, " + type + "\n" +
            body + "\nreturn %y : " + tensor(result) + " } }",
        &context_);
  }

  std::vector<float> run(const std::vector<uint32_t>& tokens) {
    if (!module) {
      ADD_FAILURE() << "the test's module does not parse";
      return {};
    }
    StatusOr<Interpreter> engine = Interpreter::create(*module, weights);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    StatusOr<std::span<const float>> logits = engine->forward(tokens, /*allLogits=*/true);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    return logits.ok() ? std::vector<float>(logits->begin(), logits->end()) : std::vector<float>();
  }

  bool pass(std::unique_ptr<mlir::Pass> pass) {
    mlir::PassManager passes(&context_);
    passes.addPass(std::move(pass));
    return mlir::succeeded(passes.run(*module));
  }
  size_t count(llvm::StringRef name) {
    size_t n = 0;
    module->walk([&](mlir::Operation* op) { n += op->getName().getStringRef() == name; });
    return n;
  }

private:
  mlir::MLIRContext context_;

public:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  MemoryWeights weights;
};

/// The weights that a routing gives four logits.
std::vector<float> routed(const std::string& routing, int choices, const std::vector<float>& logits,
                          const std::vector<float>& bias = {}, const std::vector<float>& scales = {}) {
  std::string operands, types;
  for (const auto& [word, values] : {std::pair("bias", bias), std::pair("scales", scales)})
    if (!values.empty()) {
      operands += std::string(" ") + word + "(%" + word + ")";
      types += ", !cmf.weight<4, f32>";
    }
  Model model(
      4, choices,
      "%bias = cmf.weight \"bias\" : !cmf.weight<4, f32>\n%scales = cmf.weight \"scales\" : !cmf.weight<4, f32>\n"
      "%ids_, %y = cmf.moe_route %h" +
          operands + " {routing = #cmf.routing<top_k = " + std::to_string(choices) + ", " + routing + ">} : (" +
          tensor(4) + types + ") -> (" + tensor(choices, "i32") + ", " + tensor(choices) + ")");
  std::vector<float> rows(16);
  std::copy(logits.begin(), logits.end(), rows.begin());
  model.weights.state("embed", rows);
  if (!bias.empty())
    model.weights.state("bias", bias);
  if (!scales.empty())
    model.weights.state("scales", scales);
  return model.run({0});
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST(MoeRoute, SoftmaxIsOverAllExperts) {
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0) + 1;
  const float best = static_cast<float>(std::exp(3.0) / sum), second = static_cast<float>(std::exp(2.0) / sum);
  EXPECT_THAT(routed("scoring = softmax", 2, {1, 3, 2, 0}), Pointwise(FloatNear(kRounding), {best, second}));
  EXPECT_THAT(routed("scoring = softmax, norm_epsilon = 0.0 : f64, scale = 3.0 : f64", 2, {1, 3, 2, 0}),
              Pointwise(FloatNear(4 * kRounding), {3 * best / (best + second), 3 * second / (best + second)}));
}

TEST(MoeRoute, BiasChoosesButDoesNotWeigh) {
  // Biased: 0.5 + 1, sigmoid(2), sigmoid(1), 0.5. Scales belong to the experts, not to the places.
  EXPECT_THAT(routed("scoring = sigmoid", 2, {0, 2, 1, 0}, {1, 0, 0, 0}, {2, 3, 5, 7}),
              Pointwise(FloatNear(kRounding), {1.0f, static_cast<float>(3 * sigmoid(2))}));
  EXPECT_THAT(routed("scoring = sigmoid, norm_minimum = 10.0 : f64", 1, {0, 2, 1, 0}),
              Pointwise(FloatNear(kRounding), {static_cast<float>(sigmoid(2) / 10)}));
}

TEST(MoeRoute, GroupsLimitTheChoice) {
  // Pairs (0, 1) and (2, 3): the second pair's sum is larger, though expert 0 is the best.
  EXPECT_THAT(routed("scoring = sigmoid, groups = 2, groups_used = 1", 2, {5, -9, 3, 3}),
              Pointwise(FloatNear(kRounding), {static_cast<float>(sigmoid(3)), static_cast<float>(sigmoid(3))}));
}

TEST(MoeRoute, OtherScores) {
  EXPECT_THAT(routed("scoring = softmax_selected", 2, {1, 3, 2, 0}),
              Pointwise(FloatNear(kRounding), {static_cast<float>(sigmoid(1)), static_cast<float>(sigmoid(-1))}));
  EXPECT_THAT(routed("scoring = sqrt_softplus", 1, {1, 3, 2, 0}),
              Pointwise(FloatNear(kRounding), {static_cast<float>(std::sqrt(std::log1p(std::exp(3.0))))}));
}

TEST(MoeExperts, EachTokenTakesItsOwn) {
  // Two features. Token 0 goes to expert 1, token 1 to expert 0; expert e gives (e + 1) * silu(x0) * x1 in feature e.
  Model model(2, 2, R"(
    %ids_, %w = cmf.moe_route %h {routing = #cmf.routing<top_k = 1, scoring = softmax_selected>} : (tensor<?x2xf32>) -> (tensor<?x1xi32>, tensor<?x1xf32>)
    %g = cmf.weight "g" : !cmf.weight<1x2, f32>
    %u = cmf.weight "u" : !cmf.weight<1x2, f32>
    %d0 = cmf.weight "d0" : !cmf.weight<2x1, f32>
    %d1 = cmf.weight "d1" : !cmf.weight<2x1, f32>
    %y = cmf.moe_experts %h, %ids_, %w gate(%g, %g) up(%u, %u) down(%d0, %d1) {activation = #cmf.activation<silu>}
      : (tensor<?x2xf32>, tensor<?x1xi32>, tensor<?x1xf32>, !cmf.weight<1x2, f32>, !cmf.weight<1x2, f32>, !cmf.weight<1x2, f32>,
         !cmf.weight<1x2, f32>, !cmf.weight<2x1, f32>, !cmf.weight<2x1, f32>) -> tensor<?x2xf32>)");
  model.weights.state("embed", {1, 2, 3, 0.5});
  model.weights.state("g", {1, 0});
  model.weights.state("u", {0, 1});
  model.weights.state("d0", {1, 0});
  model.weights.state("d1", {0, 2});
  EXPECT_THAT(model.run({0, 1}), Pointwise(FloatNear(4 * kRounding), {0.0f, static_cast<float>(2 * sigmoid(1) * 2),
                                                                      static_cast<float>(3 * sigmoid(3) * 0.5), 0.0f}));
}

struct Layer {
  bool shared = false, sharedGate = false, residual = false, dual = false, biases = false;
};

/// Three experts of two widths on rows of 32, unfused.
std::string layer(const Layer& l) {
  std::string text = R"(
    %r = cmf.weight "r" : !cmf.weight<3x32, f16>
    %g = cmf.weight "g" : !cmf.weight<16x32, q8_0>
    %n = cmf.weight "n" : !cmf.weight<8x32, q4_0>
    %d = cmf.weight "d" : !cmf.weight<32x16, f16>
    %m = cmf.weight "m" : !cmf.weight<32x8, f16>
    %b = cmf.weight "b" : !cmf.weight<16, f32>
    %c = cmf.weight "c" : !cmf.weight<8, f32>
    %sg = cmf.weight "sg" : !cmf.weight<1x32, f16>
    %x = cmf.rms_norm %h {eps = 0.5 : f64} : tensor<?x32xf32>
    %rd = cmf.dequant %r : !cmf.weight<3x32, f16>)";
  text += "\n%l = cmf.matmul " + std::string(l.dual ? "%h" : "%x") + ", %rd : tensor<?x32xf32>, tensor<3x32xf32>\n";
  text += R"(
    %ids_, %w = cmf.moe_route %l {routing = #cmf.routing<top_k = 2, scoring = softmax, norm_epsilon = 0.0 : f64>} : (tensor<?x3xf32>) -> (tensor<?x2xi32>, tensor<?x2xf32>)
    %e0 = cmf.moe_experts %x, %ids_, %w gate(%g, %n, %g) up(%g, %n, %g) down(%d, %m, %d) )";
  text += std::string(l.biases ? "gate_biases(%b, %c, %b) " : "") +
          "{activation = #cmf.activation<silu>} : (tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32>, "
          "!cmf.weight<16x32, q8_0>, !cmf.weight<8x32, q4_0>, !cmf.weight<16x32, q8_0>, !cmf.weight<16x32, q8_0>, "
          "!cmf.weight<8x32, q4_0>, !cmf.weight<16x32, q8_0>, !cmf.weight<32x16, f16>, !cmf.weight<32x8, f16>, "
          "!cmf.weight<32x16, f16>" +
          (l.biases ? ", !cmf.weight<16, f32>, !cmf.weight<8, f32>, !cmf.weight<16, f32>" : "") +
          ") -> tensor<?x32xf32>\n";
  std::string y = "%e0";
  if (l.shared) {
    text += R"(
      %gd = cmf.dequant %g : !cmf.weight<16x32, q8_0>
      %dd = cmf.dequant %d : !cmf.weight<32x16, f16>
      %sa = cmf.matmul %x, %gd : tensor<?x32xf32>, tensor<16x32xf32>
      %su = cmf.matmul %x, %gd : tensor<?x32xf32>, tensor<16x32xf32>
      %sl = cmf.glu silu(%sa, %su) : tensor<?x16xf32>
      %s0 = cmf.matmul %sl, %dd : tensor<?x16xf32>, tensor<32x16xf32>)";
    std::string shared = "%s0";
    if (l.sharedGate) {
      text += R"(
        %sgd = cmf.dequant %sg : !cmf.weight<1x32, f16>
        %sgl = cmf.matmul %x, %sgd : tensor<?x32xf32>, tensor<1x32xf32>
        %s1 = cmf.gate %s0, %sgl <sigmoid> : tensor<?x32xf32>, tensor<?x1xf32>)";
      shared = "%s1";
    }
    text += "\n%e1 = cmf.add " + y + ", " + shared + " : tensor<?x32xf32>\n";
    y = "%e1";
  }
  if (l.residual) {
    text += "\n%e2 = cmf.add %h, " + y + " : tensor<?x32xf32>\n";
    y = "%e2";
  }
  return text + "%y = cmf.scale " + y + " {factor = 2.0 : f64} : tensor<?x32xf32>";
}

class FuseMoe : public testing::TestWithParam<Layer> {};

TEST_P(FuseMoe, ValuesStay) {
  Model model(32, 32, layer(GetParam()));
  const std::vector<uint32_t> tokens = {3, 31, 0, 7, 7, 12};
  const std::vector<float> expected = model.run(tokens);
  ASSERT_EQ(expected.size(), tokens.size() * 32);
  for (float value : expected)
    ASSERT_TRUE(std::isfinite(value));
  ASSERT_TRUE(model.pass(compiler::createCmfFuseDequantMatmul()));
  EXPECT_EQ(model.run(tokens), expected);
  ASSERT_TRUE(model.pass(compiler::createCmfFuseMoe()));
  EXPECT_EQ(model.run(tokens), expected);
  EXPECT_EQ(model.count("cmf.fused_moe"), 1u);
  for (const char* gone : {"cmf.moe_route", "cmf.moe_experts", "cmf.fused_matmul", "cmf.glu", "cmf.gate", "cmf.add"})
    EXPECT_EQ(model.count(gone), 0u) << gone;
}

INSTANTIATE_TEST_SUITE_P(Layers, FuseMoe,
                         testing::Values(Layer{}, Layer{.residual = true}, Layer{.shared = true, .residual = true},
                                         Layer{.shared = true, .sharedGate = true},
                                         Layer{.shared = true, .sharedGate = true, .residual = true, .biases = true},
                                         Layer{.residual = true, .dual = true}));

} // namespace
} // namespace cortiq::cmf
