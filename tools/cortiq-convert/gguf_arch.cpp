#include "tools/cortiq-convert/gguf_arch.h"

#include <algorithm>

namespace cortiq::convert {
namespace {

using enum GgufMixer;

constexpr GgufArch kTable[] = {
    {.name = "deepseek2",
     .cmf_name = "deepseek_v2",
     .mixer = kLatent,
     .pairing = GgufPairing::kNeighbours,
     .experts = GgufExperts::kKeyed},
    {.name = "gemma", .cmf_name = "gemma", .act = "gelu_tanh", .scaled_embedding = true},
    {.name = "gemma2",
     .cmf_name = "gemma2",
     .norms = GgufNorms::kSandwich,
     .windows = GgufWindows::kAlways,
     .window_pattern = 2,
     .act = "gelu_tanh",
     .scaled_embedding = true,
     .odd_scale_layers = 46,
     .attention_cap = 50,
     .final_cap = 30},
    {.name = "gemma3",
     .cmf_name = "gemma3_text",
     .norms = GgufNorms::kSandwich,
     .head_norms = true,
     .windows = GgufWindows::kIfKeyed,
     .window_pattern = 6,
     .window_base = 10000,
     .act = "gelu_tanh",
     .scaled_embedding = true,
     .odd_scale_layers = 62},
    {.name = "granite", .cmf_name = "granite", .pairing = GgufPairing::kNeighbours, .divides_logits = true},
    {.name = "granitemoe",
     .cmf_name = "granitemoe",
     .pairing = GgufPairing::kNeighbours,
     .experts = GgufExperts::kNormalized,
     .needs_experts = true,
     .divides_logits = true},
    {.name = "hunyuan-dense", .cmf_name = "hunyuan_v1_dense", .head_norms = true, .norm_after_rope = true},
    {.name = "lfm2",
     .cmf_name = "lfm2",
     .mixer = kShortConv,
     .head_norms = true,
     .final_norm = "token_embd_norm.weight"},
    {.name = "lfm2moe",
     .cmf_name = "lfm2_moe",
     .mixer = kShortConv,
     .head_norms = true,
     .experts = GgufExperts::kNormalized,
     .needs_experts = true,
     .sigmoid = true,
     .final_norm = "token_embd_norm.weight"},
    {.name = "llama",
     .cmf_name = "llama",
     .experts_name = "mixtral",
     .pairing = GgufPairing::kNeighbours,
     .experts = GgufExperts::kNormalized},
    {.name = "phi3", .cmf_name = "phi3", .fused_gate = true},
    {.name = "qwen2", .cmf_name = "qwen2"},
    {.name = "qwen2moe", .cmf_name = "qwen2_moe", .experts = GgufExperts::kPlainWeights, .needs_experts = true},
    {.name = "qwen3", .cmf_name = "qwen3", .head_norms = true},
    {.name = "qwen35",
     .cmf_name = "qwen3_5_text",
     .mixer = kGatedDelta,
     .norms = GgufNorms::kRenamed,
     .head_norms = true},
    {.name = "qwen35moe",
     .cmf_name = "qwen3_5_moe_text",
     .mixer = kGatedDelta,
     .norms = GgufNorms::kRenamed,
     .head_norms = true,
     .experts = GgufExperts::kNormalized,
     .needs_experts = true},
    {.name = "qwen3moe",
     .cmf_name = "qwen3_moe",
     .head_norms = true,
     .experts = GgufExperts::kNormalized,
     .needs_experts = true},
    {.name = "qwen3next",
     .cmf_name = "qwen3_next",
     .mixer = kGatedDelta,
     .norms = GgufNorms::kRenamed,
     .head_norms = true,
     .experts = GgufExperts::kNormalized},
};

struct Homeless {
  std::string_view name, why;
};

constexpr Homeless kHomeless[] = {
    {"bert", "it is an encoder"},
    {"gpt-oss", "CMF has no biases of routers, experts and attention outputs"},
    {"jina-bert-v2", "it is an encoder"},
    {"nomic-bert", "it is an encoder"},
    {"olmo2", "CMF layers have a norm in front of attention, and norms of queries and keys are those of single heads"},
    {"olmoe", "CMF norms of queries and keys are those of single heads"},
    {"starcoder2", "CMF has neither norms with biases nor feed-forward blocks without a gate"},
};

} // namespace

const GgufArch* find_gguf_arch(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const GgufArch& a) { return a.name == name; });
  return found == std::end(kTable) ? nullptr : found;
}

std::string_view no_cmf_form(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kHomeless), std::end(kHomeless), [&](const Homeless& a) { return a.name == name; });
  return found == std::end(kHomeless) ? std::string_view() : found->why;
}

std::string gguf_arch_names() {
  std::string names;
  for (const GgufArch& arch : kTable)
    names += (names.empty() ? "" : ", ") + std::string(arch.name);
  return names;
}

} // namespace cortiq::convert
