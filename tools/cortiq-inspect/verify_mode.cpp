// --verify: every check that a container allows, hashes included.

#include <cstdio>

#include "formats/quote.h"
#include "tools/cortiq-inspect/artifact_mode.h"
#include "tools/cortiq-inspect/model_file.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

Status verify(const formats::CmfFile& file, std::string& found) {
  CORTIQ_RETURN_IF_ERROR(file.verify());
  found = "sound, all stored hashes match";
  return {};
}

Status verify(const formats::GgufFile&, std::string& found) {
  // Opening has already checked all that there is.
  found = "sound; GGUF files carry no hashes";
  return {};
}

Status run(const Arguments& arguments) {
  if (is_artifact(arguments.file))
    return verify_artifact(arguments.file);
  CORTIQ_ASSIGN_OR_RETURN(const ModelFile model, open_model_file(arguments.file));
  std::string found;
  CORTIQ_RETURN_IF_ERROR(std::visit([&](const auto& file) { return verify(file, found); }, model));
  std::printf("%s: %s (%zu tensors)\n", formats::quote(arguments.file).c_str(), found.c_str(),
              tensors_of(model).size());
  return {};
}

} // namespace

const Mode kVerifyMode = {
    .flag = "--verify",
    .help = "check FILE whole, recomputing every stored hash",
    .options = {},
    .run = run,
};

} // namespace cortiq::inspect
