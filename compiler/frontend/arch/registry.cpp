#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

namespace {

constexpr const Architecture* kArchitectures[] = {
    &kLlama, &kQwen2, &kQwen2Moe, &kQwen3, &kQwen3Moe,
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
