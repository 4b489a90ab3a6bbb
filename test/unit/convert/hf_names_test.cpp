// Words of checkpoints for what CMF calls otherwise.

#include "tools/cortiq-convert/hf_names.h"

#include <gtest/gtest.h>

namespace cortiq::convert {
namespace {

TEST(HfNames, WordsOfFamiliesBecomeCanonical) {
  const struct {
    const char *checkpoint, *canonical;
  } kCases[] = {
      {"model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"},
      {"model.language_model.norm.weight", "model.norm.weight"},
      {"language_model.model.layers.1.self_attn.q_proj.weight", "model.layers.1.self_attn.q_proj.weight"},
      {"language_model.lm_head.weight", "lm_head.weight"},
      {"model.layers.0.block_sparse_moe.gate.weight", "model.layers.0.mlp.gate.weight"},
      {"model.layers.0.block_sparse_moe.experts.3.w1.weight", "model.layers.0.mlp.experts.3.gate_proj.weight"},
      {"model.layers.0.block_sparse_moe.experts.3.w2.weight", "model.layers.0.mlp.experts.3.down_proj.weight"},
      {"model.layers.0.mlp.gate.e_score_correction_bias", "model.layers.0.mlp.expert_bias"},
      {"model.layers.4.mlp.shared_experts.up_proj.weight", "model.layers.4.mlp.shared_expert.up_proj.weight"},
      {"model.layers.0.self_attn.query_layernorm.weight", "model.layers.0.self_attn.q_norm.weight"},
      {"model.layers.2.operator_norm.weight", "model.layers.2.input_layernorm.weight"},
      {"model.layers.2.feed_forward.w3.weight", "model.layers.2.mlp.up_proj.weight"},
      {"model.layers.2.feed_forward.expert_bias", "model.layers.2.mlp.expert_bias"},
      {"model.layers.2.self_attn.out_proj.weight", "model.layers.2.self_attn.o_proj.weight"},
      {"model.layers.0.conv.conv.weight", "model.layers.0.short_conv.conv.weight"},
      {"model.layers.0.linear_attn.out_proj.weight", "model.layers.0.linear_attn.out_proj.weight"},
      {"model.embedding_norm.weight", "model.norm.weight"},
      {"model.visual.blocks.0.attn.qkv.weight", ""},
      {"model.layers.0.self_attn.rotary_emb.inv_freq", ""},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(canonical_name(c.checkpoint), c.canonical) << c.checkpoint;
}

} // namespace
} // namespace cortiq::convert
