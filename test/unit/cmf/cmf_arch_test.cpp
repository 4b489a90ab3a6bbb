#include "formats/cmf/cmf_arch.h"

#include <gmock/gmock.h>

#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

Json minimal_arch() {
  return minimal_header()["arch"];
}

Json with(Json arch, const char* key, Json value) {
  arch[key] = std::move(value);
  return arch;
}

TEST(CmfArch, TakesTheDefaultsOfTheSpecification) {
  const StatusOr<CmfArch> arch = parse_cmf_arch(minimal_arch());
  ASSERT_TRUE(arch.ok()) << arch.status().message();
  EXPECT_EQ(arch->norm_style, CmfNormStyle::kQwen);
  EXPECT_EQ(arch->rope_theta, 10000);
  EXPECT_FALSE(arch->tie_word_embeddings);
  EXPECT_EQ(arch->partial_rotary_factor, 1.0f);
  EXPECT_EQ(arch->hidden_act, "silu");
  EXPECT_EQ(arch->num_loops, 1u);
  EXPECT_FALSE(arch->sliding_window.has_value());
  EXPECT_FALSE(arch->moe.has_value());
  EXPECT_TRUE(arch->family_blocks.empty());
  EXPECT_EQ(arch->layer_type(0), CmfLayerType::kFullAttention);
  EXPECT_EQ(arch->layer_type(7), CmfLayerType::kFullAttention) << "past the end";
}

TEST(CmfArch, ReadsBlocksAndNull) {
  Json json = minimal_arch();
  json["moe"] = {{"num_experts", 8}, {"top_k", 2}, {"moe_intermediate_size", 32}, {"norm_topk_prob", true}};
  json["yarn"] = {{"factor", 4}, {"original_max_position_embeddings", 4096}};
  json["sliding_window"] = nullptr;
  json["rope_freq_factors"] = {1, 2.5};
  json["some_future_field"] = {1, 2};
  const StatusOr<CmfArch> arch = parse_cmf_arch(json);
  ASSERT_TRUE(arch.ok()) << arch.status().message();
  EXPECT_EQ(arch->moe->top_k, 2u);
  EXPECT_TRUE(arch->moe->norm_topk_prob);
  EXPECT_EQ(arch->yarn->beta_fast, 32.0f);
  EXPECT_THAT(*arch->rope_freq_factors, ::testing::ElementsAre(1.0, 2.5));
}

TEST(CmfArch, NamesTheFieldThatIsWrong) {
  const std::pair<Json, const char*> cases[] = {
      {with(minimal_arch(), "hidden_size", -64), "arch.hidden_size is -64"},
      {with(minimal_arch(), "hidden_size", 64.0), "arch.hidden_size is 64.0"},
      {with(minimal_arch(), "num_layers", 4000000000u), "arch.num_layers is 4000000000"},
      {with(minimal_arch(), "layer_types", {"FullAttention", "Other"}), "arch.layer_types[1] is 'Other'"},
      {with(minimal_arch(), "norm_style", "llama"), "arch.norm_style is 'llama'"},
      {with(minimal_arch(), "tie_word_embeddings", 1), "arch.tie_word_embeddings is 1"},
      {with(minimal_arch(), "tie_word_embeddings", nullptr), "arch.tie_word_embeddings is null"},
      {with(minimal_arch(), "rms_norm_eps", "x"), "arch.rms_norm_eps is 'x'"},
      {with(minimal_arch(), "embed_multiplier", 1e300), "arch.embed_multiplier is 1e+300"},
      {with(minimal_arch(), "moe", {{"num_experts", 8}, {"top_k", 2}}), "arch.moe.moe_intermediate_size is missing"},
      {with(minimal_arch(), "moe", 3), "arch.moe is not a JSON object"},
      {with(minimal_arch(), "rope_freq_factors", {1, "x"}), "arch.rope_freq_factors is an array"},
      {Json(3), "arch is not a JSON object"},
  };
  for (const auto& [json, reason] : cases) {
    const StatusOr<CmfArch> arch = parse_cmf_arch(json);
    ASSERT_FALSE(arch.ok()) << reason;
    EXPECT_THAT(arch.status().message(), HasSubstr(reason));
  }
}

TEST(CmfArch, HoldsBlocksAgainstLayers) {
  const auto linear = [](const char* kind, Json layers) {
    Json json = with(minimal_arch(), "layer_types", {"LinearAttention"});
    json["linear_core"] = {{"kind", kind}, {"num_heads", 2}, {"nphase", 1}, {"value_head_dim", 8}};
    if (!layers.is_null())
      json["linear_core"]["phase_delta_layers"] = std::move(layers);
    return json;
  };
  const std::pair<Json, const char*> cases[] = {
      {linear("gated_delta_net", nullptr), ""},
      {linear("gated_delta_net", {0}), "does not belong to kind"},
      {linear("other", nullptr), "'other', which is not known"},
      {linear("vmf_phase_delta_v1", {0}), ""},
      {linear("vmf_phase_delta_v1", nullptr), "is empty"},
      {linear("vmf_phase_delta_v1", {0, 0}), "names layer 0"},
      {linear("vmf_phase_delta_v1", {1}), "names layer 1"},
      {with(minimal_arch(), "layer_types", {"BoundedAttention"}), "arch.anchor_core is missing"},
      {with(minimal_arch(), "anchor_core", Json::object()), "without any BoundedAttention layer"},
      {with(minimal_arch(), "prism_hadamard", Json::object()), "belongs to arch_name prism_hadamard_qwen35"},
  };
  for (const auto& [json, reason] : cases) {
    const StatusOr<CmfArch> arch = parse_cmf_arch(json);
    EXPECT_EQ(arch.ok(), *reason == '\0') << reason;
    EXPECT_THAT(arch.status().message(), HasSubstr(reason));
  }
}

} // namespace
} // namespace cortiq::formats
