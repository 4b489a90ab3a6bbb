#include "tools/cortiq-convert/gguf_arch.h"

#include <algorithm>

namespace cortiq::convert {
namespace {

constexpr GgufArch kTable[] = {
    {.name = "llama", .cmf_name = "llama", .neighbours = true, .head_norms = false},
    {.name = "qwen2", .cmf_name = "qwen2", .neighbours = false, .head_norms = false},
    {.name = "qwen3", .cmf_name = "qwen3", .neighbours = false, .head_norms = true},
};

} // namespace

const GgufArch* find_gguf_arch(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const GgufArch& a) { return a.name == name; });
  return found == std::end(kTable) ? nullptr : found;
}

std::string_view gguf_arch_names() {
  return "llama (with Mistral), qwen2 and qwen3";
}

} // namespace cortiq::convert
