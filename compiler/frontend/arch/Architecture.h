#pragma once

// The table of architectures that GGUF files name: one file and one row each.

#include <span>
#include <string_view>

#include "compiler/frontend/GgufReader.h"

namespace cortiq::compiler {

struct Architecture {
  std::string_view name; ///< general.architecture
  Status (*describe)(GgufReader& reader);
};

extern const Architecture kDeepseek2;
extern const Architecture kExaone4;
extern const Architecture kGemma2;
extern const Architecture kGemma3;
extern const Architecture kGemma;
extern const Architecture kGptOss;
extern const Architecture kGranite;
extern const Architecture kGraniteMoe;
extern const Architecture kHunyuanDense;
extern const Architecture kInternlm2;
extern const Architecture kLfm2;
extern const Architecture kLfm2Moe;
extern const Architecture kLlama;
extern const Architecture kMistral3;
extern const Architecture kOlmo2;
extern const Architecture kOlmoe;
extern const Architecture kPhi3;
extern const Architecture kQwen2;
extern const Architecture kQwen2Moe;
extern const Architecture kQwen2Vl;
extern const Architecture kQwen35;
extern const Architecture kQwen35Moe;
extern const Architecture kQwen3;
extern const Architecture kQwen3Moe;
extern const Architecture kQwen3Next;
extern const Architecture kQwen3Vl;
extern const Architecture kQwen3VlMoe;
extern const Architecture kSeedOss;
extern const Architecture kSmollm3;
extern const Architecture kStarcoder2;

/// All of them, by name.
std::span<const Architecture* const> architectures();

/// The one of that name, or null.
const Architecture* findArchitecture(std::string_view name);

} // namespace cortiq::compiler
