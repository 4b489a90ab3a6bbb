// The q8a record, held against its definition in kernel_abi.h.

#include <bit>
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
  explicit Quantizer(uint64_t k, bool bf16 = false) : k_(k), layout_(formats::q8_act_layout(k)) {
    artifact::ProgramT program;
    for (const auto kind :
         {artifact::BufferKind::F32, bf16 ? artifact::BufferKind::Q8Bf16Act : artifact::BufferKind::Q8Act}) {
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
    const uint64_t record = bf16 ? formats::bf16_act_layout(k).bytes : layout_.bytes;
    resolver.slots = {{0, input, k, true}, {input, record, k, true, bf16}};
    arena_.resize(input + record, 0x55);
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

float to_float(uint16_t bf16) {
  return std::bit_cast<float>(uint32_t{bf16} << 16);
}

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

TEST(Quantize, Bf16StandsBehindTheRecord) {
  for (const uint64_t k : {1u, 32u, 77u, 256u}) {
    Quantizer quantizer(k, true);
    const formats::Bf16ActLayout layout = formats::bf16_act_layout(k);
    EXPECT_EQ(layout.values % 64, 0);
    EXPECT_EQ(layout.bytes % 128, 64);
    EXPECT_GE(layout.bytes, layout.values + 64 * quantizer.layout().groups);
    std::vector<float> x(k);
    uint32_t random = 7;
    for (float& value : x) {
      random = random * 1664525 + 1013904223;
      value = std::bit_cast<float>(random & 0xbfffffff); // below 2, subnormals too
    }
    const uint8_t* record = quantizer.run(x);
    expect_definition(quantizer, x);
    for (uint64_t i = 0; i < 32 * quantizer.layout().groups; ++i) {
      const float value = i < k ? x[i] : 0;
      const auto bits = Quantizer::at<uint16_t>(record, layout.values, i);
      if (std::fabs(value) < std::numeric_limits<float>::min()) {
        EXPECT_EQ(bits & 0x7fff, 0) << value;
        continue;
      }
      // The nearest: no neighbour is nearer, and of two as near the one whose last bit is 0.
      const double error = std::fabs(double{to_float(bits)} - value);
      for (const uint16_t other : {uint16_t(bits - 1), uint16_t(bits + 1)}) {
        const double theirs = std::fabs(double{to_float(other)} - value);
        EXPECT_TRUE(!(theirs < error) && !(theirs == error && bits % 2)) << value;
      }
    }
  }
}

TEST(Quantize, Bf16OfHalvesIsEvenAndWhatIsNotANumberStays) {
  std::vector<float> x(32, 1.0f);
  x[0] = 1 + 0x1p-8f;     // halfway to 1 + 2^-7
  x[1] = 1 + 3 * 0x1p-8f; // halfway to 1 + 2^-6
  x[2] = -std::numeric_limits<float>::infinity();
  x[3] = std::bit_cast<float>(0x7fffffff);
  Quantizer quantizer(32, true);
  const uint8_t* record = quantizer.run(x);
  const uint64_t values = formats::bf16_act_layout(32).values;
  EXPECT_EQ(to_float(Quantizer::at<uint16_t>(record, values, 0)), 1.0f);
  EXPECT_EQ(to_float(Quantizer::at<uint16_t>(record, values, 1)), 1 + 0x1p-6f);
  EXPECT_EQ(to_float(Quantizer::at<uint16_t>(record, values, 2)), x[2]);
  EXPECT_TRUE(std::isnan(to_float(Quantizer::at<uint16_t>(record, values, 3))));
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
