#include "compiler/emit/provenance.h"

#include <nlohmann/json.hpp>

#include "llvm/Config/llvm-config.h"

#include "compiler/emit/commit.h"
#include "formats/artifact/artifact_file.h"
#include "formats/signing/signer_key.h"

namespace cortiq::compiler {

std::string compilerCommit() {
  return CORTIQ_COMMIT;
}

std::string provenanceText(const artifact::ManifestT& manifest, const std::vector<SourceFile>& sources) {
  using Json = nlohmann::ordered_json;
  Json targets = Json::array({manifest.target});
  for (size_t i = 1; i < manifest.targets.size(); ++i)
    targets.push_back(manifest.targets[i]->name);
  Json files = Json::array();
  for (const SourceFile& file : sources) {
    Json row = {{"name", file.name}, {"bytes", file.bytes}};
    if (!file.hash.empty())
      row["blake2b256"] = formats::hex_digits(file.hash);
    files.push_back(std::move(row));
  }
  const Json all = {{"sources", std::move(files)},
                    {"compiler",
                     {{"name", "cortiq-compile"},
                      {"version", manifest.compiler_version},
                      {"commit", compilerCommit()},
                      {"mlir", LLVM_VERSION_STRING},
                      {"schema", formats::kArtifactSchemaVersion}}},
                    {"targets", std::move(targets)},
                    {"numerics", manifest.numerics == artifact::Numerics::Exact ? "exact" : "fast"},
                    {"options", manifest.options}};
  // A file's name may be any bytes.
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace cortiq::compiler
