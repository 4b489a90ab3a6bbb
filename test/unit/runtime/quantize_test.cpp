// The q8a record, held against its definition in kernel_abi.h.

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

/// Runs one QuantizeOp on a row.
class Quantizer {
public:
  explicit Quantizer(uint64_t k) : k_(k), layout_(formats::q8_act_layout(k)) {
    artifact::ProgramT program;
    for (const auto kind : {artifact::BufferKind::F32, artifact::BufferKind::Q8Act}) {
      program.buffers.push_back(std::make_unique<artifact::BufferT>());
      program.buffers.back()->kind = kind;
    }
    artifact::QuantizeOpT op;
    op.input = 0;
    op.act_out = 1;
    program.stages.push_back(std::make_unique<artifact::StageT>());
    program.stages[0]->calls.push_back(std::make_unique<artifact::CallT>());
    program.stages[0]->calls[0]->op.Set(std::move(op));
    builder_.Finish(artifact::Program::Pack(builder_, &program));
    const auto* table = flatbuffers::GetRoot<artifact::Program>(builder_.GetBufferPointer());
    Resolver resolver;
    resolver.program = table;
    const uint64_t input = formats::f32_act_bytes(k);
    resolver.slots = {{0, input, k, true}, {input, layout_.bytes, k, true}};
    arena_.resize(input + layout_.bytes);
    ProgramFacts facts;
    EXPECT_TRUE(resolve_quantize(*table->stages()->Get(0)->calls()->Get(0), resolver, facts, calls_).ok());
  }

  const uint8_t* run(const std::vector<float>& x) {
    std::memcpy(arena_.data(), x.data(), x.size() * sizeof(float));
    StepContext step;
    step.arena = arena_.data();
    calls_[0]->run(step, {0, 1, 1}, 0, 1, nullptr);
    return arena_.data() + formats::f32_act_bytes(k_);
  }
  template <class T>
  static T at(const uint8_t* record, uint64_t offset, uint64_t index) {
    T value;
    std::memcpy(&value, record + offset + index * sizeof(T), sizeof(T));
    return value;
  }
  const formats::Q8ActLayout& layout() const { return layout_; }

private:
  uint64_t k_;
  formats::Q8ActLayout layout_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<uint8_t> arena_;
  CallList calls_;
};

void expect_definition(Quantizer& quantizer, const std::vector<float>& x) {
  const formats::Q8ActLayout& layout = quantizer.layout();
  const uint8_t* record = quantizer.run(x);
  for (uint64_t group = 0; group < layout.groups; ++group) {
    float largest = 0;
    for (uint64_t i = 32 * group; i < std::min<uint64_t>(x.size(), 32 * group + 32); ++i)
      largest = std::max(largest, std::fabs(x[i]));
    const float scale = largest / 127.0f;
    ASSERT_EQ(Quantizer::at<float>(record, layout.scale, group), scale);
    int32_t sums[2] = {0, 0};
    for (uint64_t i = 0; i < 32; ++i) {
      const float value = 32 * group + i < x.size() ? x[32 * group + i] : 0;
      const auto code = scale == 0 ? 0 : static_cast<int32_t>(std::nearbyint(value / scale)); // half to even
      ASSERT_EQ(Quantizer::at<int8_t>(record, 0, 32 * group + i), code) << "element " << 32 * group + i;
      sums[i / 16] += code;
    }
    ASSERT_EQ(Quantizer::at<int32_t>(record, layout.sum32, group), sums[0] + sums[1]);
    ASSERT_EQ(Quantizer::at<int32_t>(record, layout.sum16, 2 * group), sums[0]);
    ASSERT_EQ(Quantizer::at<int32_t>(record, layout.sum16, 2 * group + 1), sums[1]);
    ASSERT_EQ(Quantizer::at<float>(record, layout.msum, group), scale * static_cast<float>(sums[0] + sums[1]));
  }
}

TEST(Quantize, FollowsItsDefinitionForEveryLength) {
  uint32_t random = 1;
  for (const uint64_t k : {1u, 15u, 16u, 31u, 32u, 33u, 63u, 64u, 100u, 576u}) {
    Quantizer quantizer(k);
    for (int round = 0; round < 20; ++round) {
      std::vector<float> x(k);
      for (float& value : x) {
        random = random * 1664525 + 1013904223;
        value = (static_cast<float>(random >> 8) / 8388608.0f - 1) * std::exp2(static_cast<float>(round - 10));
      }
      expect_definition(quantizer, x);
    }
  }
}

TEST(Quantize, RoundsHalvesToEvenAndHoldsTheExtremes) {
  std::vector<float> x(64, 0.0f); // the second group is all zero
  x[0] = 127;
  for (int i = 1; i < 32; ++i)
    x[i] = static_cast<float>(i) - 16 + 0.5f;
  Quantizer quantizer(64);
  expect_definition(quantizer, x);
  std::fill(x.begin(), x.end(), -3.0f);
  expect_definition(quantizer, x);
  x.assign(64, std::numeric_limits<float>::max());
  expect_definition(quantizer, x);
}

TEST(Quantize, WhatIsNotFiniteStaysVisible) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(64, 1.0f);
    x[40] = bad;
    Quantizer quantizer(64);
    const uint8_t* record = quantizer.run(x);
    EXPECT_EQ(Quantizer::at<float>(record, quantizer.layout().scale, 0), 1.0f / 127.0f);
    EXPECT_TRUE(std::isnan(Quantizer::at<float>(record, quantizer.layout().scale, 1)));
    EXPECT_TRUE(std::isnan(Quantizer::at<float>(record, quantizer.layout().msum, 1)));
  }
}

} // namespace
} // namespace cortiq::runtime
