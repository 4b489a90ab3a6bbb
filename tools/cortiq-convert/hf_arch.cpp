#include "tools/cortiq-convert/hf_arch.h"

#include <algorithm>

namespace cortiq::convert {
namespace {

constexpr HfArch kTable[] = {
    {.name = "deepseek_v2", .cmf_name = "deepseek_v2", .mixer = HfMixer::kLatent, .experts = HfExperts::kDeepSeek},
    {.name = "deepseek_v3", .cmf_name = "deepseek_v3", .mixer = HfMixer::kLatent, .experts = HfExperts::kDeepSeek},
    {.name = "gemma",
     .cmf_name = "gemma",
     .offset_norms = true,
     .scaled_embedding = true,
     .tied = true,
     .act = "gelu_pytorch_tanh",
     .head_dim = 256},
    {.name = "gemma2",
     .cmf_name = "gemma2",
     .window = HfWindow::kAlternate,
     .window_pattern = 2,
     .offset_norms = true,
     .sandwich = true,
     .scaled_embedding = true,
     .tied = true,
     .act = "gelu_pytorch_tanh",
     .head_dim = 256},
    {.name = "gemma3_text",
     .cmf_name = "gemma3_text",
     .window = HfWindow::kAlternate,
     .window_pattern = 6,
     .head_norms = true,
     .offset_norms = true,
     .sandwich = true,
     .scaled_embedding = true,
     .tied = true,
     .act = "gelu_pytorch_tanh",
     .head_dim = 256},
    {.name = "granite", .cmf_name = "granite"},
    {.name = "hunyuan_v1_dense", .cmf_name = "hunyuan_v1_dense", .head_norms = true, .norm_after_rope = true},
    {.name = "lfm2",
     .cmf_name = "lfm2",
     .mixer = HfMixer::kShortConv,
     .head_norms = true,
     .tied = true,
     .eps = "norm_eps"},
    {.name = "lfm2_moe",
     .cmf_name = "lfm2_moe",
     .mixer = HfMixer::kShortConv,
     .experts = HfExperts::kLfm,
     .head_norms = true,
     .tied = true,
     .eps = "norm_eps"},
    {.name = "llama", .cmf_name = "llama"},
    {.name = "mistral", .cmf_name = "mistral", .window = HfWindow::kAlways},
    {.name = "mixtral", .cmf_name = "mixtral", .experts = HfExperts::kMixtral, .window = HfWindow::kAlways},
    {.name = "phi3", .cmf_name = "phi3", .window = HfWindow::kAlways},
    {.name = "qwen2", .cmf_name = "qwen2", .window = HfWindow::kSwitched},
    {.name = "qwen2_moe", .cmf_name = "qwen2_moe", .experts = HfExperts::kQwen, .window = HfWindow::kSwitched},
    {.name = "qwen3", .cmf_name = "qwen3", .window = HfWindow::kSwitched, .head_norms = true, .head_dim = 128},
    {.name = "qwen3_5_moe_text",
     .cmf_name = "qwen3_5_moe_text",
     .mixer = HfMixer::kGatedDelta,
     .experts = HfExperts::kQwen,
     .head_norms = true,
     .offset_norms = true,
     .gated_queries = true,
     .head_dim = 256,
     .rotary = 0.25},
    {.name = "qwen3_5_text",
     .cmf_name = "qwen3_5_text",
     .mixer = HfMixer::kGatedDelta,
     .head_norms = true,
     .offset_norms = true,
     .gated_queries = true,
     .head_dim = 256,
     .rotary = 0.25},
    {.name = "qwen3_moe",
     .cmf_name = "qwen3_moe",
     .experts = HfExperts::kQwen,
     .window = HfWindow::kSwitched,
     .head_norms = true},
    {.name = "qwen3_next",
     .cmf_name = "qwen3_next",
     .mixer = HfMixer::kGatedDelta,
     .experts = HfExperts::kQwen,
     .head_norms = true,
     .offset_norms = true,
     .gated_queries = true,
     .head_dim = 256,
     .rotary = 0.25},
};

} // namespace

const HfArch* find_hf_arch(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const HfArch& a) { return a.name == name; });
  return found == std::end(kTable) ? nullptr : found;
}

std::string hf_arch_names() {
  std::string names;
  for (const HfArch& arch : kTable)
    names += (names.empty() ? "" : ", ") + std::string(arch.name);
  return names;
}

} // namespace cortiq::convert
