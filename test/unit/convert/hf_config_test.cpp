// config.json as header fields.

#include "tools/cortiq-convert/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cortiq::convert {
namespace {

using formats::Json;
using ::testing::HasSubstr;

Json config(const char* type, Json more = Json::object()) {
  Json out = {{"model_type", type},     {"hidden_size", 64},        {"intermediate_size", 128},
              {"num_hidden_layers", 3}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
              {"vocab_size", 100},      {"rms_norm_eps", 1e-5},     {"max_position_embeddings", 512},
              {"rope_theta", 500000.0}};
  out.update(more);
  return Json::parse(out.dump()); // numbers as a file's are
}

Json arch_of(const Json& config) {
  const StatusOr<HfHeader> header = read_hf_config(config);
  EXPECT_TRUE(header.ok()) << header.status().message();
  return header.ok() ? header->arch : Json();
}

std::string refusal_of(const Json& config) {
  const StatusOr<HfHeader> header = read_hf_config(config);
  return header.ok() ? "none" : header.status().message();
}

TEST(HfConfig, PlainFields) {
  const Json arch = arch_of(config("llama"));
  EXPECT_EQ(arch["arch_name"], "llama");
  EXPECT_EQ(arch["head_dim"], 16);
  EXPECT_EQ(arch["num_kv_heads"], 2);
  EXPECT_EQ(arch["rope_theta"], 500000.0);
  EXPECT_EQ(arch["tie_word_embeddings"], false);
  EXPECT_EQ(arch["layer_types"], Json(std::vector<std::string>(3, "FullAttention")));
  EXPECT_FALSE(arch.contains("rope_freq_factors"));
  EXPECT_EQ(arch_of(config("qwen3", {{"head_dim", 32}}))["head_dim"], 32);
}

TEST(HfConfig, WindowsGoByTheModelType) {
  const Json window = {{"sliding_window", 128}};
  EXPECT_FALSE(arch_of(config("llama", window)).contains("sliding_window"));
  EXPECT_EQ(arch_of(config("mistral", window))["layer_types"], Json(std::vector<std::string>(3, "SlidingAttention")));
  EXPECT_FALSE(arch_of(config("mistral", {{"sliding_window", nullptr}})).contains("sliding_window"));
  EXPECT_FALSE(arch_of(config("mistral", {{"sliding_window", 512}})).contains("sliding_window"));
  EXPECT_FALSE(arch_of(config("qwen2", window)).contains("sliding_window"));
  const Json switched = {{"sliding_window", 128}, {"use_sliding_window", true}, {"max_window_layers", 2}};
  EXPECT_EQ(arch_of(config("qwen2", switched))["layer_types"],
            Json({"FullAttention", "FullAttention", "SlidingAttention"}));
}

TEST(HfConfig, RopeScalings) {
  const Json linear = arch_of(config("llama", {{"rope_scaling", {{"type", "linear"}, {"factor", 4.0}}}}));
  EXPECT_EQ(linear["rope_freq_factors"], Json(std::vector<double>(8, 4.0)));
  const Json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  EXPECT_EQ(arch_of(config("llama", {{"rope_scaling", llama3}}))["rope_freq_factors"].size(), 8u);
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}};
  const Json read = arch_of(config("qwen3", {{"rope_scaling", yarn}}))["yarn"];
  EXPECT_EQ(read["factor"], 4.0);
  EXPECT_EQ(read["original_max_position_embeddings"], 128);
  EXPECT_NEAR(read["attention_factor"].get<double>(), 1.1386294, 1e-6);
  const Json newer = {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 777.0}}}};
  EXPECT_EQ(arch_of(config("qwen3", newer))["rope_theta"], 777.0);
}

TEST(HfConfig, WhatCannotBeIsNamed) {
  EXPECT_THAT(refusal_of(Json::array()), HasSubstr("object"));
  EXPECT_THAT(refusal_of(Json::object()), HasSubstr("model_type"));
  EXPECT_THAT(refusal_of(config("gpt_oss")), HasSubstr("gpt_oss"));
  EXPECT_THAT(refusal_of(config("llama", {{"quantization_config", {{"bits", 4}}}})), HasSubstr("quantization_config"));
  EXPECT_THAT(refusal_of(config("llama", {{"hidden_size", -1}})), HasSubstr("hidden_size"));
  EXPECT_THAT(refusal_of(config("llama", {{"hidden_size", "64"}})), HasSubstr("hidden_size"));
  EXPECT_THAT(refusal_of(config("llama", {{"vocab_size", nullptr}})), HasSubstr("vocab_size"));
  EXPECT_THAT(refusal_of(config("llama", {{"num_key_value_heads", 3}})), HasSubstr("num_key_value_heads"));
  EXPECT_THAT(refusal_of(config("llama", {{"num_hidden_layers", 1 << 30}})), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(refusal_of(config("llama", {{"head_dim", 1u << 31}})), HasSubstr("head_dim"));
  EXPECT_THAT(refusal_of(config("llama", {{"hidden_act", "relu"}})), HasSubstr("relu"));
  EXPECT_THAT(refusal_of(config("llama", {{"rope_theta", 0}})), HasSubstr("rope_theta"));
  EXPECT_THAT(refusal_of(config("llama", {{"rope_scaling", 7}})), HasSubstr("rope_scaling"));
  EXPECT_THAT(refusal_of(config("llama", {{"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}})),
              HasSubstr("dynamic"));
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
  EXPECT_THAT(refusal_of(config("mistral", {{"rope_scaling", yarn}, {"sliding_window", 128}})), HasSubstr("yarn"));
}

} // namespace
} // namespace cortiq::convert
