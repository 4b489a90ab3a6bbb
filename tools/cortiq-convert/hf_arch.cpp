#include "tools/cortiq-convert/hf_arch.h"

#include <algorithm>

namespace cortiq::convert {
namespace {

constexpr HfArch kTable[] = {
    {.name = "llama", .cmf_name = "llama", .head_norms = false, .window = HfWindow::kNever},
    {.name = "mistral", .cmf_name = "mistral", .head_norms = false, .window = HfWindow::kAlways},
    {.name = "qwen2", .cmf_name = "qwen2", .head_norms = false, .window = HfWindow::kSwitched},
    {.name = "qwen3", .cmf_name = "qwen3", .head_norms = true, .window = HfWindow::kSwitched},
};

} // namespace

const HfArch* find_hf_arch(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const HfArch& a) { return a.name == name; });
  return found == std::end(kTable) ? nullptr : found;
}

std::string_view hf_arch_names() {
  return "llama, mistral, qwen2 and qwen3";
}

} // namespace cortiq::convert
