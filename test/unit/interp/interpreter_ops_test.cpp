// The reference of each operation against values worked out by hand, and the interpreter's state.

#include "dialects/CMF/Interp/Interpreter.h"

#include <cmath>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/unit/interp/memory_weights.h"

namespace cortiq::cmf {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// One f32 rounding of values near 1.
constexpr float kRounding = 1e-6f;

/// A model of `vocab` features whose embedding is stated, and whose body is `body`, from %h to %y.
class Model {
public:
  Model(int vocab, int hidden, const std::string& body, int resultFeatures) {
    context_->loadDialect<CMFDialect, mlir::func::FuncDialect>();
    const std::string h = std::to_string(hidden), v = std::to_string(vocab), r = std::to_string(resultFeatures);
    const std::string text = "module attributes {cmf.model = {architecture = \"t\", hidden = " + h +
                             ", layers = 1, vocab = " + v +
                             ", trained_context = 64}} { func.func @forward(%ids: tensor<?xi32>) -> tensor<?x" + r +
                             "xf32> {\n" + "%e = cmf.weight \"embed\" : !cmf.weight<" + v + "x" + h + ", f32>\n" +
                             "%h = cmf.embed %ids, %e : tensor<?xi32>, !cmf.weight<" + v + "x" + h + ", f32>\n" + body +
                             "\nreturn %y : tensor<?x" + r + "xf32> } }";
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, context_.get());
  }

  StatusOr<Interpreter> interpreter(InterpreterOptions options = {}) {
    if (!module_)
      return internal_error("the test's module does not parse");
    return Interpreter::create(*module_, weights, options);
  }

  std::vector<float> run(std::vector<uint32_t> tokens) {
    StatusOr<Interpreter> engine = interpreter();
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    if (!engine.ok())
      return {};
    StatusOr<std::span<const float>> logits = engine->forward(tokens, /*allLogits=*/true);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    return logits.ok() ? std::vector<float>(logits->begin(), logits->end()) : std::vector<float>();
  }

  MemoryWeights weights;

private:
  std::unique_ptr<mlir::MLIRContext> context_ = std::make_unique<mlir::MLIRContext>();
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

// Vocabulary 4, so that every token id is legal whatever the result's width is: the interpreter takes the width as
// such.
Model pairs(const std::string& body, int features = 4) {
  Model model(4, 4, body, features);
  model.weights.state("embed", {1, 2, 3, 4, -1, 0, 1, 2, 0.5, 0.5, 0.5, 0.5, 4, 3, 2, 1});
  return model;
}

TEST(InterpreterOps, EmbedPicksRows) {
  EXPECT_THAT(pairs("%y = cmf.scale %h {factor = 2.0 : f64} : tensor<?x4xf32>").run({1, 0}),
              ElementsAre(-2, 0, 2, 4, 2, 4, 6, 8));
}

TEST(InterpreterOps, MatmulBiasAndDequant) {
  Model model = pairs("%w = cmf.weight \"w\" : !cmf.weight<4x4, f32>\n%b = cmf.weight \"b\" : !cmf.weight<4, f32>\n"
                      "%d = cmf.dequant %w : !cmf.weight<4x4, f32>\n"
                      "%m = cmf.matmul %h, %d : tensor<?x4xf32>, tensor<4x4xf32>\n"
                      "%y = cmf.bias_add %m, %b : tensor<?x4xf32>, !cmf.weight<4, f32>");
  model.weights.state("w", {1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, -1});
  model.weights.state("b", {0.5, 0, 0, 1});
  EXPECT_THAT(model.run({0}), ElementsAre(1.5, 2, 10, -3));
}

TEST(InterpreterOps, RowsMapReordersAndSlices) {
  // Rows 2..5 of six, whose heads of 4 come as neighbouring pairs: 2, 4, 3, 5.
  Model model =
      pairs("%w = cmf.weight \"w\" {rows = #cmf.rows<of = 6, first = 2, deinterleave = 4>} : !cmf.weight<4x4, f32>\n"
            "%y = cmf.fused_matmul %h weights(%w) : tensor<?x4xf32> weights(!cmf.weight<4x4, f32>)");
  std::vector<float> rows;
  for (int r = 0; r < 6; ++r)
    rows.insert(rows.end(), {static_cast<float>(r), 0, 0, 0});
  model.weights.state("w", rows);
  EXPECT_THAT(model.run({0}), ElementsAre(2, 4, 3, 5));
}

TEST(InterpreterOps, RowsMapTakesAPartOfEveryPeriod) {
  // Of every 5 rows from row 1 the first 2, whose pairs are single numbers: 1, 2, 6, 7.
  Model model =
      pairs("%w = cmf.weight \"w\" {rows = #cmf.rows<of = 11, first = 1, deinterleave = 2, take = 2, period = 5>}"
            " : !cmf.weight<4x4, f32>\n"
            "%y = cmf.fused_matmul %h weights(%w) : tensor<?x4xf32> weights(!cmf.weight<4x4, f32>)");
  std::vector<float> rows;
  for (int r = 0; r < 11; ++r)
    rows.insert(rows.end(), {static_cast<float>(r), 0, 0, 0});
  model.weights.state("w", rows);
  EXPECT_THAT(model.run({0}), ElementsAre(1, 2, 6, 7));
}

TEST(InterpreterOps, RowsMapReordersABias) {
  Model model = pairs("%b = cmf.weight \"b\" {rows = #cmf.rows<of = 4, deinterleave = 4>} : !cmf.weight<4, f32>\n"
                      "%y = cmf.bias_add %h, %b : tensor<?x4xf32>, !cmf.weight<4, f32>");
  model.weights.state("b", {10, 20, 30, 40});
  EXPECT_THAT(model.run({0}), ElementsAre(11, 32, 23, 44));
}

TEST(InterpreterOps, RmsNormOfRowsAndGroups) {
  Model row = pairs("%w = cmf.weight \"w\" : !cmf.weight<4, f32>\n"
                    "%y = cmf.rms_norm %h, %w {eps = 0.5 : f64, unit_offset} : tensor<?x4xf32>, !cmf.weight<4, f32>");
  row.weights.state("w", {0, 1, 0, -1});
  const float f = 1 / std::sqrt(30.0f / 4 + 0.5f);
  EXPECT_THAT(row.run({0}), Pointwise(FloatNear(kRounding), {f, 4 * f, 3 * f, 0.0f}));

  Model group = pairs("%y = cmf.rms_norm %h {eps = 0.0 : f64, group = 2 : i64} : tensor<?x4xf32>");
  const float a = 1 / std::sqrt(2.5f), b = 1 / std::sqrt(12.5f);
  EXPECT_THAT(group.run({0}), Pointwise(FloatNear(kRounding), {a, 2 * a, 3 * b, 4 * b}));
}

TEST(InterpreterOps, AddRmsNormGivesSumAndNorm) {
  const std::string head = "%w = cmf.weight \"w\" : !cmf.weight<4, f32>\n";
  const std::string fused =
      "%s, %n = cmf.add_rms_norm %h, %h, %w {eps = 0.0 : f64} : tensor<?x4xf32>, !cmf.weight<4, f32>\n";
  Model sum = pairs(head + fused + "%y = cmf.scale %s {factor = 1.0 : f64} : tensor<?x4xf32>");
  EXPECT_THAT(sum.run({0}), ElementsAre(2, 4, 6, 8));
  Model norm = pairs(head + fused + "%y = cmf.scale %n {factor = 1.0 : f64} : tensor<?x4xf32>");
  norm.weights.state("w", {1, 1, 1, 2});
  const float f = 1 / std::sqrt(30.0f);
  EXPECT_THAT(norm.run({0}), Pointwise(FloatNear(kRounding), {2 * f, 4 * f, 6 * f, 16 * f}));
}

TEST(InterpreterOps, RopeRotatesHalfSplitPairsByPosition) {
  // One pair (0, 1) of each head of two; magnitude 2.
  Model model = pairs(
      "%y = cmf.rope %h {head_dim = 2 : i64, rope = #cmf.rope<inverse_frequencies = [0.5], magnitude = 2.0 : f32>} "
      ": tensor<?x4xf32>");
  const float c = 2 * std::cos(0.5f), s = 2 * std::sin(0.5f);
  EXPECT_THAT(model.run({0, 0}), Pointwise(FloatNear(4 * kRounding), {2.0f, 4.0f, 6.0f, 8.0f, c - 2 * s, s + 2 * c,
                                                                      3 * c - 4 * s, 3 * s + 4 * c}));
  // In a head of four the first half is rotated, the rest passes through.
  Model partial = pairs(
      "%y = cmf.rope %h {head_dim = 4 : i64, rope = #cmf.rope<inverse_frequencies = [0.5], magnitude = 1.0 : f32>} "
      ": tensor<?x4xf32>");
  const std::vector<float> rotated = partial.run({0, 0});
  EXPECT_THAT(std::vector<float>(rotated.begin() + 4, rotated.end()),
              Pointwise(FloatNear(4 * kRounding), {(c - 2 * s) / 2, (s + 2 * c) / 2, 3.0f, 4.0f}));
}

std::string attention(const std::string& extra, int heads = 1, int kvHeads = 1, int dim = 4) {
  return "%y = cmf.attention %h, %h, %h " + extra.substr(0, extra.find('|')) +
         " {layer = 0 : i64, heads = " + std::to_string(heads) + " : i64, kv_heads = " + std::to_string(kvHeads) +
         " : i64, head_dim = " + std::to_string(dim) + " : i64, v_dim = " + std::to_string(dim) +
         " : i64, scale = 0.25 : f64" + extra.substr(extra.find('|') + 1) +
         "} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>";
}

TEST(InterpreterOps, AttentionIsCausalSoftmax) {
  const std::vector<float> out = pairs(attention("|") + " -> tensor<?x4xf32>").run({0, 1});
  EXPECT_THAT(std::vector<float>(out.begin(), out.begin() + 4), ElementsAre(1, 2, 3, 4));
  // Second token: scores (-1 + 3 + 8) / 4 = 2.5 and (1 + 1 + 4) / 4 = 1.5.
  const float p = 1 / (1 + std::exp(-1.0f)), q = 1 - p;
  EXPECT_THAT(std::vector<float>(out.begin() + 4, out.end()),
              Pointwise(FloatNear(4 * kRounding), {p - q, 2 * p, 3 * p + q, 4 * p + 2 * q}));
}

TEST(InterpreterOps, WindowHidesOldKeys) {
  const std::vector<float> out = pairs(attention("|, window = 1 : i64") + " -> tensor<?x4xf32>").run({0, 1});
  EXPECT_THAT(out, ElementsAre(1, 2, 3, 4, -1, 0, 1, 2));
}

TEST(InterpreterOps, SoftcapBoundsScores) {
  const std::vector<float> out = pairs(attention("|, softcap = 2.0 : f64") + " -> tensor<?x4xf32>").run({0, 1});
  const float p = 1 / (1 + std::exp(2 * std::tanh(0.75f) - 2 * std::tanh(1.25f)));
  EXPECT_NEAR(out[5], 2 * p, 4 * kRounding);
}

TEST(InterpreterOps, SinksTakeWeightWithoutValue) {
  Model model = pairs("%s = cmf.weight \"s\" : !cmf.weight<1, f32>\n" + attention("sinks(%s)|") +
                      " sinks(!cmf.weight<1, f32>) -> tensor<?x4xf32>");
  model.weights.state("s", {7.5}); // as large as the only score
  EXPECT_THAT(model.run({0}), Pointwise(FloatNear(kRounding), {0.5f, 1.0f, 1.5f, 2.0f}));
}

TEST(InterpreterOps, GluActivations) {
  struct Case {
    const char* name;
    double at1;
  };
  for (const Case& c : {Case{"silu", 1 / (1 + std::exp(-1.0))}, Case{"gelu", 0.5 * (1 + std::erf(std::sqrt(0.5)))},
                        Case{"gelu_tanh", 0.5 * (1 + std::tanh(0.7978845608 * 1.044715))}, Case{"relu", 1}}) {
    const std::vector<float> out = pairs("%y = cmf.glu " + std::string(c.name) + "(%h, %h) : tensor<?x4xf32>").run({1});
    EXPECT_NEAR(out[2], c.at1, kRounding) << c.name; // gate 1, up 1
    EXPECT_EQ(out[1], 0) << c.name;
  }
}

TEST(InterpreterOps, GateByTokenGroupAndFeature) {
  auto gated = [](const std::string& function, int gates) {
    Model model = pairs("%w = cmf.weight \"w\" : !cmf.weight<" + std::to_string(gates) +
                        "x4, f32>\n%g = cmf.fused_matmul %h weights(%w) : tensor<?x4xf32> weights(!cmf.weight<" +
                        std::to_string(gates) + "x4, f32>)\n%y = cmf.gate %h, %g <" + function +
                        "> : tensor<?x4xf32>, tensor<?x" + std::to_string(gates) + "xf32>");
    std::vector<float> pick(gates * 4);
    for (int i = 0; i < gates; ++i)
      pick[4 * i + i] = 1;
    model.weights.state("w", pick);
    return model.run({0}); // features 1, 2, 3, 4; gate i is feature i
  };
  auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  auto softplus = [](float x) { return std::log(1 + std::exp(x)); };
  EXPECT_THAT(gated("sigmoid", 1),
              Pointwise(FloatNear(4 * kRounding), {sigmoid(1), 2 * sigmoid(1), 3 * sigmoid(1), 4 * sigmoid(1)}));
  EXPECT_THAT(gated("softplus", 2),
              Pointwise(FloatNear(8 * kRounding), {softplus(1), 2 * softplus(1), 3 * softplus(2), 4 * softplus(2)}));
  EXPECT_THAT(gated("sigmoid", 4),
              Pointwise(FloatNear(4 * kRounding), {sigmoid(1), 2 * sigmoid(2), 3 * sigmoid(3), 4 * sigmoid(4)}));
}

TEST(InterpreterOps, ActivationsWithNumbers) {
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  // Features 1, 2, 3, 4: the gate is cut at 2.5, the other factor at 2.5 as well.
  EXPECT_THAT(pairs("%y = cmf.glu swigluoai(%h, %h) {alpha = 1.5 : f64, limit = 2.5 : f64} : tensor<?x4xf32>").run({0}),
              Pointwise(FloatNear(10 * kRounding),
                        {sigmoid(1.5) * 2, 2 * sigmoid(3) * 3, 2.5 * sigmoid(3.75) * 3.5, 2.5 * sigmoid(3.75) * 3.5}));
  EXPECT_THAT(pairs("%y = cmf.glu situ(%h, %h) {alpha = 2.0 : f64, limit = 3.0 : f64} : tensor<?x4xf32>").run({0}),
              Pointwise(FloatNear(10 * kRounding), {2 * std::tanh(0.5) * sigmoid(1) * 3 * std::tanh(1 / 3.0),
                                                    2 * std::tanh(1.0) * sigmoid(2) * 3 * std::tanh(2 / 3.0),
                                                    2 * std::tanh(1.5) * sigmoid(3) * 3 * std::tanh(1.0),
                                                    2 * std::tanh(2.0) * sigmoid(4) * 3 * std::tanh(4 / 3.0)}));
  EXPECT_THAT(pairs("%y = cmf.glu situ(%h, %h) {alpha = 2.0 : f64, limit = 0.0 : f64} : tensor<?x4xf32>").run({0})[2],
              FloatNear(static_cast<float>(2 * std::tanh(1.5) * sigmoid(3) * 3), 10 * kRounding));
  EXPECT_THAT(pairs("%y = cmf.activate relu(%h) : tensor<?x4xf32>").run({1}), ElementsAre(0, 0, 1, 2));
}

TEST(InterpreterOps, LayerNormSubtractsTheMean) {
  Model model = pairs("%w = cmf.weight \"w\" : !cmf.weight<4, f32>\n%b = cmf.weight \"b\" : !cmf.weight<4, f32>\n"
                      "%y = cmf.layer_norm %h weight(%w) bias(%b) {eps = 0.75 : f64} : tensor<?x4xf32>"
                      " weight(!cmf.weight<4, f32>) bias(!cmf.weight<4, f32>)");
  model.weights.state("w", {1, 2, 1, -1});
  model.weights.state("b", {0, 0, 10, 1});
  // Of 1, 2, 3, 4: mean 2.5, variance 1.25.
  const float f = 1 / std::sqrt(2.0f);
  EXPECT_THAT(model.run({0}), Pointwise(FloatNear(10 * kRounding), {-1.5f * f, -f, 10 + 0.5f * f, 1 - 1.5f * f}));
}

TEST(InterpreterOps, HeadsFromTwoParts) {
  Model each =
      pairs("%y = cmf.concat_heads %h, %h {heads = 2 : i64} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>", 8);
  EXPECT_THAT(each.run({0}), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  Model shared = pairs(
      "%y = cmf.concat_heads %h, %h {heads = 2 : i64, shared} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x12xf32>",
      12);
  EXPECT_THAT(shared.run({0}), ElementsAre(1, 2, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4));
}

TEST(InterpreterOps, EveryHeadHasItsOwnMatrix) {
  Model model = pairs("%a = cmf.weight \"a\" : !cmf.weight<3x2, f32>\n%b = cmf.weight \"b\" : !cmf.weight<3x2, f32>\n"
                      "%y = cmf.head_matmul %h weights(%a, %b) : tensor<?x4xf32>"
                      " weights(!cmf.weight<3x2, f32>, !cmf.weight<3x2, f32>)",
                      6);
  model.weights.state("a", {1, 0, 0, 1, 1, 1});
  model.weights.state("b", {2, 0, 0, 2, 1, -1});
  EXPECT_THAT(model.run({0}), ElementsAre(1, 2, 3, 6, 8, -1));
}

TEST(InterpreterOps, LogitsOfClusters) {
  Model model = pairs("%w = cmf.weight \"w\" : !cmf.weight<2x4, f32>\n"
                      "%c = cmf.fused_matmul %h weights(%w) : tensor<?x4xf32> weights(!cmf.weight<2x4, f32>)\n"
                      "%y = cmf.cluster_logits %h, %c : tensor<?x4xf32>, tensor<?x2xf32>");
  model.weights.state("w", {1, 0, 0, 0, 0, 0, 0, 1});
  // Clusters 1 and 4; logits 1, 2 and 3, 4. The probabilities of all tokens sum to 1.
  const std::vector<float> y = model.run({0});
  const double first = std::exp(1.0) / (std::exp(1.0) + std::exp(4.0));
  const double low = 1 / (1 + std::exp(1.0));
  EXPECT_THAT(y,
              Pointwise(FloatNear(10 * kRounding), {std::log(first * low), std::log(first * (1 - low)),
                                                    std::log((1 - first) * low), std::log((1 - first) * (1 - low))}));
}

TEST(InterpreterOps, TemperatureGrowsWithThePosition) {
  // Heads of one feature: the first sees 1, 0.5, 1, and its query at position 2 is 1.
  auto third = [](const std::string& extra) {
    return pairs("%y = cmf.attention %h, %h, %h {layer = 0 : i64, heads = 4 : i64, kv_heads = 4 : i64,"
                 " head_dim = 1 : i64, v_dim = 1 : i64, scale = 1.0 : f64" +
                 extra + "} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>")
        .run({0, 2, 0})[8];
  };
  auto mean = [](double factor) {
    const double a = std::exp(factor), b = std::exp(0.5 * factor);
    return static_cast<float>((2 * a + 0.5 * b) / (2 * a + b));
  };
  EXPECT_NEAR(third(""), mean(1), kRounding);
  EXPECT_NEAR(third(", temperature_length = 2.0 : f64, temperature_scale = 3.0 : f64"), mean(1 + 3 * std::log(2)),
              kRounding);
}

TEST(InterpreterOps, SoftcapOfValues) {
  EXPECT_NEAR(pairs("%y = cmf.softcap %h {cap = 3.0 : f64} : tensor<?x4xf32>").run({0})[2], 3 * std::tanh(1.0),
              kRounding);
}

TEST(InterpreterOps, AddAndFusedMatmulParts) {
  Model model =
      pairs("%w = cmf.weight \"w\" : !cmf.weight<2x4, f32>\n%u = cmf.weight \"u\" : !cmf.weight<4x4, f32>\n"
            "%b = cmf.weight \"b\" : !cmf.weight<4, f32>\n"
            "%p:2 = cmf.fused_matmul %h weights(%w, %u) biases(%b) {biased = array<i1: false, true>} : tensor<?x4xf32> "
            "weights(!cmf.weight<2x4, f32>, !cmf.weight<4x4, f32>) biases(!cmf.weight<4, f32>)\n"
            "%y = cmf.add %p#1, %h : tensor<?x4xf32>");
  model.weights.state("w", std::vector<float>(8, 1));
  model.weights.state("u", {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  model.weights.state("b", {0, 0, 0, 1});
  EXPECT_THAT(model.run({0}), ElementsAre(2, 4, 6, 9));
}

TEST(Interpreter, RefusesIdsBeyondTheVocabularyAndKeepsItsState) {
  Model model = pairs(attention("|") + " -> tensor<?x4xf32>");
  StatusOr<Interpreter> engine = model.interpreter();
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  ASSERT_TRUE(engine->forward(std::vector<uint32_t>{0, 1}, false).ok());
  EXPECT_EQ(engine->position(), 2u);
  StatusOr<std::span<const float>> bad = engine->forward(std::vector<uint32_t>{4}, false);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(), "token 4 is beyond the vocabulary of 4");
  EXPECT_FALSE(engine->forward({}, false).ok());
  EXPECT_EQ(engine->position(), 2u);
}

} // namespace
} // namespace cortiq::cmf
