// What each tensor becomes.

#include "tools/cortiq-convert/plan.h"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::convert {
namespace {

using formats::codec_info;
using formats::CodecId;
using ::testing::HasSubstr;

/// A model with one tensor a codec, all bytes 0x11, named as asked.
class Model {
public:
  void add(std::string name, CodecId codec, std::vector<uint64_t> shape) {
    formats::Tensor& tensor = tensors_.emplace_back();
    tensor.codec = &codec_info(codec);
    tensor.type_name = tensor.codec->gguf_name;
    tensor.shape = shape;
    std::vector<uint8_t>& bytes =
        payloads_.emplace_back(*tensor.codec->payload_bytes(*tensor.codec, tensor.rows(), tensor.cols()), 0x11);
    tensor.data = bytes;
    model_.tensors.push_back({std::move(name), std::move(shape), &tensor});
  }
  std::vector<uint8_t>& payload(size_t i) { return payloads_[i]; }

  StatusOr<std::vector<Target>> plan(const QuantOptions& options) {
    warnings.clear();
    return plan_targets(model_, options, 1, warnings);
  }

  std::vector<std::string> warnings;

private:
  std::deque<formats::Tensor> tensors_;
  std::deque<std::vector<uint8_t>> payloads_;
  SourceModel model_;
};

const formats::Codec* codec(const char* name) {
  return *parse_quant(name);
}

TEST(Plan, KeepsWhatCmfHolds) {
  Model model;
  model.add("a", CodecId::kQ4_0, {2, 64});
  model.add("b", CodecId::kF16, {2, 64});
  model.add("norm", CodecId::kF32, {64});
  const StatusOr<std::vector<Target>> targets = model.plan({});
  ASSERT_TRUE(targets.ok()) << targets.status().message();
  EXPECT_EQ((*targets)[0].codec->id, CodecId::kQ4Tiled);
  EXPECT_EQ((*targets)[1].codec->id, CodecId::kF16);
  EXPECT_EQ((*targets)[2].codec->id, CodecId::kF32);
  for (const Target& target : *targets)
    EXPECT_TRUE(target.lossless) << target.source->name;
  EXPECT_EQ(quant_type(*targets), "F16"); // as many weights as q4_tiled: the lower codec
}

TEST(Plan, QuantIsForPlainNumbersAndTheHomeless) {
  Model model;
  model.add("a", CodecId::kQ4_0, {2, 256});
  model.add("b", CodecId::kF16, {2, 256});
  model.add("c", CodecId::kQ6_K, {2, 256});
  model.add("norm", CodecId::kF32, {256});
  const StatusOr<std::vector<Target>> refused = model.plan({});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("Q6_K (1)"));
  EXPECT_THAT(refused.status().message(), HasSubstr("--quant"));
  const StatusOr<std::vector<Target>> targets = model.plan({.quant = codec("q4tp"), .tensor_quants = {}});
  ASSERT_TRUE(targets.ok()) << targets.status().message();
  EXPECT_EQ((*targets)[0].codec->id, CodecId::kQ4Tiled);
  EXPECT_EQ((*targets)[1].codec->id, CodecId::kQ4TP);
  EXPECT_EQ((*targets)[2].codec->id, CodecId::kQ4TP);
  EXPECT_FALSE((*targets)[2].lossless);
  EXPECT_EQ((*targets)[3].codec->id, CodecId::kF32);
}

TEST(Plan, TheLastPatternThatMatchesCounts) {
  Model model;
  model.add("model.layers.0.mlp.up_proj.weight", CodecId::kQ4_0, {2, 64});
  const QuantOptions options{
      .tensor_quants = {*parse_tensor_quant("*.mlp.*=q8_row"), *parse_tensor_quant("*up_proj*=q8_2f")}};
  const StatusOr<std::vector<Target>> targets = model.plan(options);
  ASSERT_TRUE(targets.ok()) << targets.status().message();
  EXPECT_EQ((*targets)[0].codec->id, CodecId::kQ82F);
  const StatusOr<std::vector<Target>> unmatched =
      model.plan({.tensor_quants = {*parse_tensor_quant("lm_head*=q8_row")}});
  ASSERT_FALSE(unmatched.ok());
  EXPECT_THAT(unmatched.status().message(), HasSubstr("lm_head*"));
}

TEST(Plan, NamingTheTwinKeepsTheCodes) {
  Model model;
  model.add("a", CodecId::kQ4_0, {2, 64});
  const StatusOr<std::vector<Target>> targets = model.plan({.tensor_quants = {*parse_tensor_quant("a=q4_tiled")}});
  ASSERT_TRUE(targets.ok());
  EXPECT_NE((*targets)[0].keeper, nullptr);
}

TEST(Plan, CodesWithoutATwinAreFoundByTheirValues) {
  Model model;
  model.add("a", CodecId::kQ8_0, {2, 64});
  EXPECT_TRUE(model.plan({}).ok());
  model.payload(0)[100] = 0x80; // level -128
  EXPECT_FALSE(model.plan({}).ok());
}

TEST(Plan, WidthsThatDoNotSuitBecomeQ82F) {
  Model model;
  model.add("a", CodecId::kF16, {2, 50});
  const StatusOr<std::vector<Target>> targets = model.plan({.quant = codec("q4tp"), .tensor_quants = {}});
  ASSERT_TRUE(targets.ok());
  EXPECT_EQ((*targets)[0].codec->id, CodecId::kQ82F);
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_THAT(model.warnings[0], HasSubstr("'a'"));
}

TEST(Plan, OptionsThatCannotBeAreRefused) {
  EXPECT_FALSE(parse_quant("q4_k").ok());
  EXPECT_FALSE(parse_quant("gguf:Q4_0").ok());
  EXPECT_FALSE(parse_tensor_quant("q8_row").ok());
  EXPECT_FALSE(parse_tensor_quant("=q8_row").ok());
  EXPECT_FALSE(parse_tensor_quant("a=").ok());
  EXPECT_TRUE(parse_tensor_quant("a=b=cmf:q8_row").ok());
}

} // namespace
} // namespace cortiq::convert
