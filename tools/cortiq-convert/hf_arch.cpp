#include "tools/cortiq-convert/hf_arch.h"

#include <algorithm>

namespace cortiq::convert {
namespace {

/// A generation of Gemma: the first, or with norms behind the blocks and a window on all layers but every
/// `window_pattern`-th.
constexpr HfArch gemma(std::string_view name, uint64_t window_pattern, bool head_norms) {
  const bool later = window_pattern != 0;
  return {.name = name,
          .window = later ? HfWindow::kAlternate : HfWindow::kNever,
          .window_pattern = window_pattern,
          .head_norms = head_norms,
          .offset_norms = true,
          .sandwich = later,
          .scaled_embedding = true,
          .tied = true,
          .act = "gelu_pytorch_tanh",
          .head_dim = 256};
}

constexpr HfArch lfm(std::string_view name, HfExperts experts) {
  return {.name = name,
          .mixer = HfMixer::kShortConv,
          .experts = experts,
          .head_norms = true,
          .tied = true,
          .eps = "norm_eps"};
}

/// Qwen with gated delta networks.
constexpr HfArch qwen_delta(std::string_view name, HfExperts experts) {
  return {.name = name,
          .mixer = HfMixer::kGatedDelta,
          .experts = experts,
          .head_norms = true,
          .offset_norms = true,
          .gated_queries = true,
          .head_dim = 256,
          .rotary = 0.25};
}

constexpr HfArch kTable[] = {
    {.name = "deepseek_v2", .mixer = HfMixer::kLatent, .experts = HfExperts::kDeepSeek},
    {.name = "deepseek_v3", .mixer = HfMixer::kLatent, .experts = HfExperts::kDeepSeek},
    gemma("gemma", 0, false),
    gemma("gemma2", 2, false),
    gemma("gemma3_text", 6, true),
    {.name = "granite"},
    {.name = "hunyuan_v1_dense", .head_norms = true, .norm_after_rope = true},
    lfm("lfm2", HfExperts::kNone),
    lfm("lfm2_moe", HfExperts::kLfm),
    {.name = "llama"},
    {.name = "mistral", .window = HfWindow::kAlways},
    {.name = "mixtral", .experts = HfExperts::kMixtral, .window = HfWindow::kAlways},
    {.name = "phi3", .window = HfWindow::kAlways},
    {.name = "qwen2", .window = HfWindow::kSwitched},
    {.name = "qwen2_moe", .experts = HfExperts::kQwen, .window = HfWindow::kSwitched},
    {.name = "qwen3", .window = HfWindow::kSwitched, .head_norms = true, .head_dim = 128},
    qwen_delta("qwen3_5_moe_text", HfExperts::kQwen),
    qwen_delta("qwen3_5_text", HfExperts::kNone),
    {.name = "qwen3_moe", .experts = HfExperts::kQwen, .window = HfWindow::kSwitched, .head_norms = true},
    qwen_delta("qwen3_next", HfExperts::kQwen),
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
