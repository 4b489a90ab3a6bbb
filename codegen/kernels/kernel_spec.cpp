#include "codegen/kernels/kernel_spec.h"

#include "codegen/kernels/overlay.h"

namespace cortiq::codegen {

std::string kernel_name(const KernelSpec& spec) {
  // Target names lose what a symbol cannot hold: "x86-64-v3" is the "v3" of kernel names.
  constexpr std::string_view kLevelPrefix = "x86-64-";
  std::string isa = spec.isa.starts_with(kLevelPrefix) ? spec.isa.substr(kLevelPrefix.size()) : spec.isa;
  std::string name = spec.tokens == 1 ? "gemv" : "gemm";
  name += "_f32_";
  constexpr std::string_view kActivations[] = {"q8a_", "f32_", "q8k_", "bf16_"};
  name += kActivations[static_cast<unsigned>(spec.arm)];
  name += formats::codec_info(spec.codec).name;
  name += spec.layout == formats::LayoutId::kR16 ? "_r16" : "_verbatim";
  name += "_k" + std::to_string(spec.k) + "_" + std::to_string(spec.tokens) + "x" + std::to_string(spec.rows);
  if (spec.bias)
    name += "_bias";
  if (spec.residual)
    name += "_res";
  return name + "_" + isa;
}

Arm fast_arm(const formats::Codec& codec, formats::LayoutId layout) {
  const bool integer = codec.form != formats::DotForm::kFloat && codec.form != formats::DotForm::kNone;
  return integer && layout == formats::LayoutId::kR16 ? Arm::kFast : Arm::kExact;
}

uint32_t least_tile_tokens(std::string_view isa) {
  // Decoding on pairs of rows is cheap enough for two tiles of four tokens. No fewer than five: records of so few
  // tokens may lie apart (kTokensInPlace, runtime/ops/moe_stages.h).
  constexpr std::pair<std::string_view, uint32_t> kLeast[] = {{"amx", 96}, {"i8mm", 8}};
  for (const auto& [target, tokens] : kLeast)
    if (target == isa)
      return tokens;
  return kManyTokens;
}

bool has_tile_kernel(const KernelSpec& spec) {
  return spec.arm == Arm::kFast && has_panel_kernel(spec);
}

bool has_panel_kernel(const KernelSpec& spec) {
  return spec.layout == formats::LayoutId::kR16 && !has_overlay(spec.codec) && spec.arm != Arm::kWide;
}

} // namespace cortiq::codegen
