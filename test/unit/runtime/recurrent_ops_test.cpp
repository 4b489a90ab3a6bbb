// The operations with recurrent state against their written-out forms, in every division of the tokens into batches.

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "runtime/loader/load.h"
#include "test/cases/linear_attention_forms.h"
#include "test/unit/runtime/artifact_builder.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime {
namespace {

using test::Rows;

// Some forty f32 roundings one after the other, on values near 1.
constexpr double kTolerance = 2e-5;
constexpr uint64_t kMaxBatch = 64;

/// One operation on slots of random rows. The last slot is its output.
class OpRunner {
public:
  OpRunner() : builder_(kMaxBatch) {}

  uint32_t input(size_t elements, double spread = 1) {
    Rows rows;
    for (size_t t = 0; t < kMaxBatch; ++t)
      rows.push_back(random(elements, spread));
    // What a slot holds is f32.
    for (auto& row : rows)
      for (double& value : row)
        value = static_cast<float>(value);
    inputs_.push_back(std::move(rows));
    return builder_.slot(elements);
  }
  uint32_t output(size_t elements) {
    builder_.manifest.vocab = static_cast<uint32_t>(elements);
    return builder_.program.logits = builder_.slot(elements);
  }
  uint32_t weight(size_t elements, double spread = 1) {
    const std::vector<double> values = random(elements, spread);
    weights_.emplace_back(values.begin(), values.end());
    return builder_.vector("w" + std::to_string(weights_.size()), weights_.back());
  }
  uint32_t state(uint64_t elements) {
    builder_.program.states.push_back(elements);
    return static_cast<uint32_t>(builder_.program.states.size() - 1);
  }
  /// Rows of input `i` for the first `tokens` tokens.
  Rows rows(size_t i, size_t tokens) const { return Rows(inputs_[i].begin(), inputs_[i].begin() + tokens); }
  const std::vector<float>& values(size_t i) const { return weights_[i]; }

  template <class OpT>
  Status load(OpT op) {
    builder_.manifest.max_context = kMaxBatch;
    builder_.stage(std::move(op));
    // Every artifact has a kernel.
    const uint32_t x = builder_.slot(1), y = builder_.slot(1);
    artifact::MatmulOpT product;
    product.parts.push_back(
        std::make_unique<artifact::MatmulPartT>(builder_.matmul(builder_.matrix("one", 1, 1, {1}), x, y)));
    builder_.stage(std::move(product));
    CORTIQ_RETURN_IF_ERROR(builder_.write(folder_.file("op.cqa")));
    CORTIQ_ASSIGN_OR_RETURN(artifact_, load_artifact(folder_.file("op.cqa"), {}));
    return {};
  }

  /// The outputs of `tokens` tokens, run in batches of `batch`.
  std::vector<float> run(size_t tokens, size_t batch) const {
    const ResolvedProgram& program = artifact_->program;
    // Nothing but a token's own row may count: the rest is not a number.
    std::vector<uint8_t> memory(program.arena_bytes + 64, 0xff), scratch(program.scratch_bytes + 64, 0xff);
    uint8_t* arena = align(memory.data());
    std::vector<std::vector<float>> states;
    std::vector<float*> pointers;
    for (uint64_t size : program.states)
      pointers.push_back(states.emplace_back(size).data());
    StepContext step;
    step.arena = arena;
    step.states = pointers;
    std::vector<float> out;
    for (size_t done = 0; done < tokens; done += batch) {
      const size_t count = std::min(batch, tokens - done);
      fill(arena, done, count);
      const Call& call = *program.stages[0].calls[0];
      const StepShape shape{0, count, 1};
      for (uint64_t item = call.items(shape); item-- > 0;) // any order will do
        call.run(step, shape, item, item + 1, align(scratch.data()));
      for (size_t t = 0; t < count; ++t) {
        const float* row = program.logits.f32(arena, t);
        out.insert(out.end(), row, row + program.logits.elements);
        for (uint64_t i = program.logits.elements; i % 16 != 0; ++i)
          EXPECT_EQ(row[i], 0.0f) << "padding of an output";
      }
    }
    return out;
  }

  /// Holds every division into batches against `want`.
  void expect(const Rows& want) const {
    const size_t tokens = want.size();
    const std::vector<float> whole = run(tokens, tokens);
    double error = 0, size = 0;
    for (size_t t = 0; t < tokens; ++t)
      for (size_t i = 0; i < want[t].size(); ++i) {
        const double difference = whole[t * want[t].size() + i] - want[t][i];
        error += difference * difference;
        size += want[t][i] * want[t][i];
      }
    EXPECT_LT(std::sqrt(error / size), kTolerance);
    for (size_t batch : {1, 3, 16, 33}) {
      const std::vector<float> parts = run(tokens, batch);
      EXPECT_EQ(std::memcmp(parts.data(), whole.data(), whole.size() * sizeof(float)), 0) << "batches of " << batch;
    }
  }

private:
  static uint8_t* align(uint8_t* p) { return p + (64 - reinterpret_cast<uintptr_t>(p) % 64) % 64; }

  std::vector<double> random(size_t count, double spread) {
    std::uniform_real_distribution<double> distribution(-spread, spread);
    std::vector<double> out(count);
    for (double& value : out)
      value = static_cast<float>(distribution(random_));
    return out;
  }

  void fill(uint8_t* arena, size_t first, size_t count) const {
    for (size_t slot = 0; slot < inputs_.size(); ++slot) {
      const auto& buffer = *builder_.program.buffers[slot];
      for (size_t t = 0; t < count; ++t) {
        auto* row = reinterpret_cast<float*>(arena + buffer.offset_per_token * kMaxBatch + t * buffer.bytes_per_token);
        for (size_t i = 0; i < buffer.elements; ++i)
          row[i] = static_cast<float>(inputs_[slot][first + t][i]);
      }
    }
  }

  std::mt19937 random_{7};
  test::ArtifactBuilder builder_;
  std::vector<Rows> inputs_;
  std::vector<std::vector<float>> weights_;
  test::TemporaryFolder folder_;
  std::unique_ptr<LoadedArtifact> artifact_;
};

class ConvolutionOps : public ::testing::TestWithParam<std::pair<size_t, size_t>> {}; // channels, taps

TEST_P(ConvolutionOps, CausalConvEqualsItsSum) {
  const auto [channels, taps] = GetParam();
  for (bool silu : {false, true}) {
    OpRunner runner;
    artifact::CausalConvOpT op;
    op.input = runner.input(channels);
    op.weight = runner.weight(channels * taps);
    op.state = runner.state((taps - 1) * channels);
    op.out = runner.output(channels);
    op.taps = taps;
    op.silu = silu;
    const Status status = runner.load(std::move(op));
    ASSERT_TRUE(status.ok()) << status.message();
    Rows want = test::convolved(runner.rows(0, 50), runner.values(0), taps);
    for (auto& row : want)
      for (double& v : row)
        v = silu ? v * test::logistic(v) : v;
    runner.expect(want);
  }
}

TEST_P(ConvolutionOps, ShortConvEqualsItsSum) {
  const auto [channels, taps] = GetParam();
  OpRunner runner;
  artifact::ShortConvOpT op;
  op.input = runner.input(3 * channels);
  op.weight = runner.weight(channels * taps);
  op.state = runner.state((taps - 1) * channels);
  op.out = runner.output(channels);
  op.taps = taps;
  const Status status = runner.load(std::move(op));
  ASSERT_TRUE(status.ok()) << status.message();
  const Rows bcx = runner.rows(0, 50);
  Rows products;
  for (const auto& row : bcx) {
    products.emplace_back(channels);
    for (size_t i = 0; i < channels; ++i)
      products.back()[i] = row[i] * row[2 * channels + i];
  }
  Rows want = test::convolved(products, runner.values(0), taps);
  for (size_t t = 0; t < want.size(); ++t)
    for (size_t i = 0; i < channels; ++i)
      want[t][i] *= bcx[t][channels + i];
  runner.expect(want);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvolutionOps,
                         ::testing::Values(std::pair<size_t, size_t>{5, 2}, std::pair<size_t, size_t>{64, 4},
                                           std::pair<size_t, size_t>{150, 3}, std::pair<size_t, size_t>{33, 40}));

class GatedDeltaOps : public ::testing::TestWithParam<test::GatedDeltaShape> {};

TEST_P(GatedDeltaOps, EqualsTheWrittenOutForm) {
  const test::GatedDeltaShape s = GetParam();
  const size_t values = s.valueHeads * s.valueDim;
  OpRunner runner;
  artifact::GatedDeltaOpT op;
  op.qkv = runner.input(2 * s.keyHeads * s.keyDim + values);
  op.z = runner.input(values, 3);
  op.a = runner.input(s.valueHeads, 2);
  op.b = runner.input(s.valueHeads, 2);
  op.decay = runner.weight(s.valueHeads, 1);
  op.dt_bias = runner.weight(s.valueHeads, 1);
  op.norm = runner.weight(s.valueDim);
  op.state = runner.state(s.valueHeads * s.keyDim * s.valueDim);
  op.out = runner.output(values);
  op.key_heads = s.keyHeads;
  op.value_heads = s.valueHeads;
  op.key_dim = s.keyDim;
  op.value_dim = s.valueDim;
  op.eps = static_cast<float>(s.eps);
  op.tiled = s.tiled;
  op.rates = s.rates;
  op.sigmoid_gate = s.sigmoidGate;
  const Status status = runner.load(std::move(op));
  ASSERT_TRUE(status.ok()) << status.message();
  runner.expect(test::gated_delta(s, runner.rows(0, 50), runner.rows(1, 50), runner.rows(2, 50), runner.rows(3, 50),
                                  runner.values(0), runner.values(1), runner.values(2)));
}

INSTANTIATE_TEST_SUITE_P(Shapes, GatedDeltaOps,
                         ::testing::Values(test::GatedDeltaShape{2, 4, 32, 32}, test::GatedDeltaShape{1, 1, 7, 5},
                                           test::GatedDeltaShape{2, 6, 16, 40, true},
                                           test::GatedDeltaShape{3, 3, 24, 9, false, false, true},
                                           test::GatedDeltaShape{2, 4, 8, 72, true}));

TEST(GatedDeltaOps, DecayMayBeGivenAsRates) {
  test::GatedDeltaShape s{2, 4, 16, 16};
  std::vector<std::vector<float>> outputs;
  for (bool rates : {false, true}) {
    OpRunner runner;
    artifact::GatedDeltaOpT op;
    op.qkv = runner.input(128);
    op.z = runner.input(64);
    op.a = runner.input(4);
    op.b = runner.input(4);
    op.decay = runner.weight(4, 0); // A_log 0 is the rate -1
    op.dt_bias = runner.weight(4);
    op.norm = runner.weight(16);
    op.state = runner.state(4 * 16 * 16);
    op.out = runner.output(64);
    op.key_heads = s.keyHeads;
    op.value_heads = s.valueHeads;
    op.key_dim = op.value_dim = 16;
    op.rates = rates;
    ASSERT_TRUE(runner.load(std::move(op)).ok());
    outputs.push_back(runner.run(20, 20));
    s.rates = rates;
    s.eps = 0;
    runner.expect(test::gated_delta(s, runner.rows(0, 20), runner.rows(1, 20), runner.rows(2, 20), runner.rows(3, 20),
                                    runner.values(0), runner.values(1), runner.values(2)));
  }
  EXPECT_NE(outputs[0], outputs[1]); // rate 0 forgets nothing
}

struct KdaCase {
  test::KdaShape shape;
  size_t decays;
};
class KdaOps : public ::testing::TestWithParam<KdaCase> {};

TEST_P(KdaOps, EqualsTheWrittenOutForm) {
  const auto [s, decays] = GetParam();
  const size_t keys = s.heads * s.keyDim, values = s.heads * s.valueDim;
  OpRunner runner;
  artifact::KdaOpT op;
  op.q = runner.input(keys);
  op.k = runner.input(keys);
  op.v = runner.input(values);
  op.f = runner.input(keys, 3);
  op.b = runner.input(s.heads, 2);
  op.gate = runner.input(values, 3);
  op.decay = runner.weight(decays);
  op.dt_bias = runner.weight(keys);
  op.norm = runner.weight(s.valueDim);
  op.state = runner.state(keys * s.valueDim);
  op.out = runner.output(values);
  op.heads = s.heads;
  op.key_dim = s.keyDim;
  op.value_dim = s.valueDim;
  op.eps = static_cast<float>(s.eps);
  op.bounded = s.bounded;
  op.lower_bound = static_cast<float>(s.bound);
  const Status status = runner.load(std::move(op));
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<float> spread(keys);
  for (size_t i = 0; i < keys; ++i)
    spread[i] = runner.values(0)[decays == s.heads ? i / s.keyDim : decays == s.keyDim ? i % s.keyDim : i];
  runner.expect(test::kda(s, runner.rows(0, 50), runner.rows(1, 50), runner.rows(2, 50), runner.rows(3, 50),
                          runner.rows(4, 50), runner.rows(5, 50), spread, runner.values(1), runner.values(2)));
}

INSTANTIATE_TEST_SUITE_P(Shapes, KdaOps,
                         ::testing::Values(KdaCase{{2, 32, 32}, 2}, KdaCase{{3, 18, 7}, 18}, KdaCase{{2, 16, 48}, 32},
                                           KdaCase{{2, 20, 32, true, -5}, 2}, KdaCase{{1, 5, 3, true, -0.5}, 5}));

struct VmfCase {
  test::VmfShape shape;
  bool gate;
};
class VmfPhaseOps : public ::testing::TestWithParam<VmfCase> {};

TEST_P(VmfPhaseOps, EqualsTheWrittenOutForm) {
  const auto [s, gate] = GetParam();
  OpRunner runner;
  artifact::VmfPhaseOpT op;
  op.theta_q = runner.input(s.heads * s.phases, 6);
  op.theta_k = runner.input(s.heads * s.phases, 6);
  op.v = runner.input(s.heads * s.valueDim);
  if (gate)
    op.gate = runner.input(s.heads, 2);
  op.decay = runner.weight(s.heads * 2 * s.phases, 2);
  op.state = runner.state(s.heads * 2 * s.phases * s.valueDim);
  op.out = runner.output(s.heads * s.valueDim);
  op.heads = s.heads;
  op.phases = s.phases;
  op.value_dim = s.valueDim;
  op.delta = s.delta;
  const Status status = runner.load(std::move(op));
  ASSERT_TRUE(status.ok()) << status.message();
  runner.expect(test::vmf_phase(s, runner.rows(0, 50), runner.rows(1, 50), runner.rows(2, 50),
                                gate ? runner.rows(3, 50) : Rows(), runner.values(0)));
}

INSTANTIATE_TEST_SUITE_P(Shapes, VmfPhaseOps,
                         ::testing::Values(VmfCase{{2, 8, 32}, false}, VmfCase{{3, 5, 7}, true},
                                           VmfCase{{2, 16, 33, true}, true}, VmfCase{{1, 3, 64, true}, false}));

TEST(RecurrentState, OfAnotherSizeOrOwnerIsRefused) {
  for (const uint64_t elements : {15u, 17u}) {
    OpRunner runner;
    artifact::CausalConvOpT op;
    op.input = runner.input(8);
    op.weight = runner.weight(24);
    op.state = runner.state(elements);
    op.out = runner.output(8);
    op.taps = 3;
    EXPECT_FALSE(runner.load(std::move(op)).ok());
  }
  OpRunner runner;
  artifact::CausalConvOpT op;
  op.input = runner.input(8);
  op.weight = runner.weight(24);
  op.state = 1;
  runner.state(16);
  op.out = runner.output(8);
  op.taps = 3;
  EXPECT_FALSE(runner.load(std::move(op)).ok());
}

} // namespace
} // namespace cortiq::runtime
