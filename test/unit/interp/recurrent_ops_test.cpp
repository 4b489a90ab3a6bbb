// The references of the operations with recurrent state against their written-out forms, and the way back.

#include <cmath>
#include <memory>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dialects/CMF/Interp/Interpreter.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/cases/linear_attention_forms.h"
#include "test/unit/interp/memory_weights.h"

namespace cortiq::cmf {
namespace {

using test::Rows;

// Relative RMS. What a state holds is rounded to f32 at every token, and a norm enlarges outputs that nearly cancel.
constexpr double kTolerance = 5e-6;
constexpr size_t kTokens = 24;
// The interpreter takes ids below its number of logits, here the operation's outputs: so many inputs come in turn.
constexpr size_t kIds = 5;

/// One operation. Token t's embedding holds its inputs, one behind the other; matrices of ones and zeros pick them.
class OneOp {
public:
  std::string input(size_t count, double spread = 1) {
    Rows rows;
    for (size_t t = 0; t < kTokens; ++t)
      rows.push_back(t < kIds ? random(count, spread) : rows[t - kIds]);
    inputs_.push_back(std::move(rows));
    return "%x" + std::to_string(inputs_.size() - 1);
  }
  std::string weight(std::vector<size_t> shape, double spread = 1) {
    size_t count = 1;
    std::string extents;
    for (size_t extent : shape) {
      count *= extent;
      extents += (extents.empty() ? "" : "x") + std::to_string(extent);
    }
    const std::vector<double> values = random(count, spread);
    values_.emplace_back(values.begin(), values.end());
    const std::string name = "w" + std::to_string(values_.size() - 1);
    weights_.state(name, values_.back());
    declarations_ += "%" + name + " = cmf.weight \"" + name + "\" : !cmf.weight<" + extents + ", f32>\n";
    types_.push_back("!cmf.weight<" + extents + ", f32>");
    return "%" + name;
  }
  std::string typeOf(const std::string& value) const {
    const size_t number = std::stoul(value.substr(2));
    return value[1] == 'x' ? "tensor<?x" + std::to_string(inputs_[number][0].size()) + "xf32>" : types_[number];
  }
  const Rows& rows(size_t i) const { return inputs_[i]; }
  const std::vector<float>& values(size_t i) const { return values_[i]; }

  /// Builds `body`, which defines %y of `outputs` features.
  StatusOr<Interpreter> build(const std::string& body, size_t outputs) {
    size_t hidden = 0;
    for (const Rows& rows : inputs_)
      hidden += rows[0].size();
    std::vector<float> embedding;
    for (size_t t = 0; t < kTokens; ++t)
      for (const Rows& rows : inputs_)
        embedding.insert(embedding.end(), rows[t].begin(), rows[t].end());
    weights_.state("embed", embedding);
    const std::string v = std::to_string(kTokens), h = std::to_string(hidden), o = std::to_string(outputs);
    std::string picks;
    size_t first = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const size_t count = inputs_[i][0].size();
      std::vector<float> matrix(count * hidden, 0);
      for (size_t r = 0; r < count; ++r)
        matrix[r * hidden + first + r] = 1;
      first += count;
      const std::string n = std::to_string(i), c = std::to_string(count);
      weights_.state("pick" + n, matrix);
      picks += "%p" + n + " = cmf.weight \"pick" + n + "\" : !cmf.weight<" + c + "x" + h + ", f32>\n%d" + n +
               " = cmf.dequant %p" + n + " : !cmf.weight<" + c + "x" + h + ", f32>\n%x" + n + " = cmf.matmul %h, %d" +
               n + " : tensor<?x" + h + "xf32>, tensor<" + c + "x" + h + "xf32>\n";
    }
    context_->loadDialect<CMFDialect, mlir::func::FuncDialect>();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(
        "module attributes {cmf.model = {architecture = \"t\", hidden = " + h + ", layers = 1, vocab = " + v +
            ", trained_context = 64}} { func.func @forward(%ids: tensor<?xi32>) -> tensor<?x" + o + "xf32> {\n" +
            "%e = cmf.weight \"embed\" : !cmf.weight<" + v + "x" + h + ", f32>\n" +
            "%h = cmf.embed %ids, %e : tensor<?xi32>, !cmf.weight<" + v + "x" + h + ", f32>\n" + picks + declarations_ +
            body + "\nreturn %y : tensor<?x" + o + "xf32> } }",
        context_.get());
    if (!module_)
      return internal_error("the test's module does not parse");
    return Interpreter::create(*module_, weights_);
  }

  /// Holds the interpreter's result, whole and token by token, against `want`.
  void expect(const std::string& body, const Rows& want) {
    StatusOr<Interpreter> engine = build(body, want[0].size());
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    std::vector<uint32_t> ids;
    for (uint32_t t = 0; t < kTokens; ++t)
      ids.push_back(t % kIds);
    for (size_t chunk : {kTokens, size_t{1}, size_t{5}}) {
      engine->reset();
      double error = 0, size = 0;
      for (size_t done = 0; done < kTokens; done += chunk) {
        const size_t count = std::min(chunk, kTokens - done);
        StatusOr<std::span<const float>> got = engine->forward(std::span(ids).subspan(done, count), true);
        ASSERT_TRUE(got.ok()) << got.status().message();
        for (size_t t = 0; t < count; ++t)
          for (size_t i = 0; i < want[0].size(); ++i) {
            const double difference = (*got)[t * want[0].size() + i] - want[done + t][i];
            error += difference * difference;
            size += want[done + t][i] * want[done + t][i];
          }
      }
      EXPECT_LT(std::sqrt(error / size), kTolerance) << "chunks of " << chunk;
    }
  }

private:
  std::vector<double> random(size_t count, double spread) {
    std::uniform_real_distribution<double> distribution(-spread, spread);
    std::vector<double> out(count);
    for (double& value : out)
      value = static_cast<float>(distribution(random_));
    return out;
  }

  std::mt19937 random_{11};
  std::unique_ptr<mlir::MLIRContext> context_ = std::make_unique<mlir::MLIRContext>();
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  MemoryWeights weights_;
  std::vector<Rows> inputs_;
  std::vector<std::vector<float>> values_;
  std::vector<std::string> types_;
  std::string declarations_;
};

std::string call(const OneOp& op, const std::string& name, const std::vector<std::string>& operands,
                 const std::string& attributes, size_t outputs) {
  std::string list, types;
  for (const std::string& operand : operands) {
    list += (list.empty() ? "" : ", ") + operand;
    types += (types.empty() ? "" : ", ") + op.typeOf(operand);
  }
  return "%y = " + name + " " + list + " {" + attributes + "} : (" + types + ") -> tensor<?x" +
         std::to_string(outputs) + "xf32>";
}

std::string number(const std::string& name, size_t value) {
  return name + " = " + std::to_string(value) + " : i64";
}

TEST(RecurrentOps, CausalConvIsItsSum) {
  for (bool silu : {false, true}) {
    OneOp op;
    const std::string x = op.input(6), taps = op.weight({6, 4});
    Rows want = test::convolved(op.rows(0), op.values(0), 4);
    for (auto& row : want)
      for (double& v : row)
        v = silu ? v * test::logistic(v) : v;
    op.expect("%y = cmf.causal_conv " + x + ", " + taps + " {state = 0 : i64" + (silu ? ", silu" : "") +
                  "} : tensor<?x6xf32>, !cmf.weight<6x4, f32>",
              want);
  }
}

TEST(RecurrentOps, ShortConvIsItsSumBetweenGates) {
  OneOp op;
  const std::string x = op.input(15), taps = op.weight({5, 3});
  Rows products;
  for (const auto& row : op.rows(0)) {
    products.emplace_back(5);
    for (size_t i = 0; i < 5; ++i)
      products.back()[i] = row[i] * row[10 + i];
  }
  Rows want = test::convolved(products, op.values(0), 3);
  for (size_t t = 0; t < want.size(); ++t)
    for (size_t i = 0; i < 5; ++i)
      want[t][i] *= op.rows(0)[t][5 + i];
  op.expect("%y = cmf.short_conv " + x + ", " + taps +
                " {state = 0 : i64} : tensor<?x15xf32>, !cmf.weight<5x3, f32> -> tensor<?x5xf32>",
            want);
}

TEST(RecurrentOps, GatedDeltaIsItsWrittenOutForm) {
  for (const test::GatedDeltaShape& s :
       {test::GatedDeltaShape{2, 4, 5, 6}, test::GatedDeltaShape{2, 4, 5, 6, true},
        test::GatedDeltaShape{1, 3, 4, 4, false, false, true}, test::GatedDeltaShape{2, 2, 4, 3, false, true}}) {
    OneOp op;
    const size_t values = s.valueHeads * s.valueDim;
    const std::vector<std::string> operands = {op.input(2 * s.keyHeads * s.keyDim + values),
                                               op.input(values, 3),
                                               op.input(s.valueHeads, 2),
                                               op.input(s.valueHeads, 2),
                                               op.weight({s.valueHeads}, 0.3),
                                               op.weight({s.valueHeads}),
                                               op.weight({s.valueDim})};
    op.expect(
        call(op, "cmf.gated_delta", operands,
             number("state", 0) + ", " + number("key_heads", s.keyHeads) + ", " + number("value_heads", s.valueHeads) +
                 ", " + number("key_dim", s.keyDim) + ", " + number("value_dim", s.valueDim) + ", eps = 1.0e-6 : f64" +
                 (s.tiled ? ", tiled" : "") + (s.rates ? ", rates" : "") + (s.sigmoidGate ? ", sigmoid_gate" : ""),
             values),
        test::gated_delta(s, op.rows(0), op.rows(1), op.rows(2), op.rows(3), op.values(0), op.values(1), op.values(2)));
  }
}

TEST(RecurrentOps, KdaIsItsWrittenOutForm) {
  struct Case {
    test::KdaShape shape;
    size_t decays;
  };
  for (const auto& [s, decays] :
       {Case{{2, 5, 4}, 2}, Case{{3, 4, 5}, 4}, Case{{2, 4, 4}, 8}, Case{{2, 4, 3, true, -5}, 2}}) {
    OneOp op;
    const size_t keys = s.heads * s.keyDim, values = s.heads * s.valueDim;
    const std::vector<std::string> operands = {op.input(keys),      op.input(keys),       op.input(values),
                                               op.input(keys, 3),   op.input(s.heads, 2), op.input(values, 3),
                                               op.weight({decays}), op.weight({keys}),    op.weight({s.valueDim})};
    std::vector<float> spread(keys);
    for (size_t i = 0; i < keys; ++i)
      spread[i] = op.values(0)[decays == s.heads ? i / s.keyDim : decays == s.keyDim ? i % s.keyDim : i];
    op.expect(call(op, "cmf.kda", operands,
                   number("state", 0) + ", " + number("heads", s.heads) + ", " + number("key_dim", s.keyDim) + ", " +
                       number("value_dim", s.valueDim) + ", eps = 1.0e-6 : f64" +
                       (s.bounded ? ", lower_bound = " + std::to_string(s.bound) + " : f64" : ""),
                   values),
              test::kda(s, op.rows(0), op.rows(1), op.rows(2), op.rows(3), op.rows(4), op.rows(5), spread, op.values(1),
                        op.values(2)));
  }
}

TEST(RecurrentOps, VmfPhaseIsItsWrittenOutForm) {
  for (const test::VmfShape& s : {test::VmfShape{2, 3, 4}, test::VmfShape{2, 3, 4, true}})
    for (bool gate : {false, true}) {
      OneOp op;
      const std::string q = op.input(s.heads * s.phases, 6), k = op.input(s.heads * s.phases, 6),
                        v = op.input(s.heads * s.valueDim), g = gate ? op.input(s.heads) : "",
                        decay = op.weight({s.heads * 2 * s.phases}, 2);
      std::string body = "%y = cmf.vmf_phase " + q + ", " + k + ", " + v + ", " + decay;
      std::string types;
      for (const std::string& operand : {q, k, v, decay, g})
        if (!operand.empty())
          types += (types.empty() ? "" : ", ") + op.typeOf(operand);
      body += (gate ? " gate(" + g + ")" : "") + " {" + number("state", 0) + ", " + number("heads", s.heads) + ", " +
              number("phases", s.phases) + ", " + number("value_dim", s.valueDim) + (s.delta ? ", delta" : "") +
              "} : (" + types + ") -> tensor<?x" + std::to_string(s.heads * s.valueDim) + "xf32>";
      op.expect(body, test::vmf_phase(s, op.rows(0), op.rows(1), op.rows(2), gate ? op.rows(3) : Rows(), op.values(0)));
    }
}

TEST(RecurrentOps, RewindRunsWhatWasKeptAgain) {
  OneOp op;
  const std::string x = op.input(6), taps = op.weight({6, 4});
  StatusOr<Interpreter> engine = op.build(
      "%y = cmf.causal_conv " + x + ", " + taps + " {state = 0 : i64} : tensor<?x6xf32>, !cmf.weight<6x4, f32>", 6);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const std::vector<uint32_t> tokens = {3, 1, 4, 1, 0, 2}, other = {2, 4};
  const auto first = engine->forward(tokens, true);
  ASSERT_TRUE(first.ok());
  const std::vector<float> want(first->begin(), first->end());
  engine->rewind(4);
  EXPECT_EQ(engine->position(), 4u);
  ASSERT_TRUE(engine->forward(other, false).ok());
  const uint32_t foreign = kTokens;
  EXPECT_FALSE(engine->forward({&foreign, 1}, false).ok());
  engine->rewind(4);
  engine->rewind(2);
  const auto again = engine->forward(std::span(tokens).subspan(2), true);
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(std::vector<float>(again->begin(), again->end()),
              testing::ElementsAreArray(std::vector<float>(want.begin() + 12, want.end())));
}

} // namespace
} // namespace cortiq::cmf
