#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

constexpr const Architecture* kArchitectures[] = {
    &kDeepseek2,    &kExaone4,   &kGemma,      &kGemma2,  &kGemma3,  &kGptOss,     &kGranite,   &kGraniteMoe,
    &kHunyuanDense, &kInternlm2, &kLfm2,       &kLfm2Moe, &kLlama,   &kMistral3,   &kOlmo2,     &kOlmoe,
    &kPhi3,         &kQwen2,     &kQwen2Moe,   &kQwen2Vl, &kQwen3,   &kQwen35,     &kQwen35Moe, &kQwen3Moe,
    &kQwen3Next,    &kQwen3Vl,   &kQwen3VlMoe, &kSeedOss, &kSmollm3, &kStarcoder2,
};

} // namespace

std::span<const Architecture* const> architectures() {
  return kArchitectures;
}

const Architecture* findArchitecture(std::string_view name) {
  for (const Architecture* architecture : kArchitectures)
    if (architecture->name == name)
      return architecture;
  return nullptr;
}

} // namespace cortiq::compiler
