// What a CMF file can hold and this compiler does not build: each is refused by its name, before anything is built.

#include "compiler/frontend/CmfFrontend.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfArch;
using formats::CmfFile;

namespace {

// Names whose files have a layer stack, or arithmetic, of their own.
constexpr std::string_view kDedicatedArchitectures[] = {"deepseek_v4", "deepseek_v41"};

} // namespace

Status refuseCmfFeatures(const CmfFile& file) {
  const CmfArch& arch = file.arch();
  auto refuse = [&](const std::string& what) {
    return unsupported(formats::quote(file.path()) + ": the model has " + what +
                       ", which this compiler does not build");
  };
  if (!file.find("model.embed_tokens.weight"))
    return invalid(formats::quote(file.path()) +
                   ": there is no tensor 'model.embed_tokens.weight', so this is no decoder");
  for (std::string_view name : kDedicatedArchitectures)
    if (arch.arch_name == name)
      return unsupported(formats::quote(file.path()) + ": architecture " + formats::quote(arch.arch_name) +
                         " has a layer stack of its own, which this compiler does not build");
  for (const std::string& block : arch.family_blocks)
    if (block != "anchor_core" && block != "prism_hadamard")
      return refuse("a block 'arch." + block + "'");
  return {};
}

} // namespace cortiq::compiler
