#include "compiler/emit/emit_artifact.h"

#include "compiler/emit/overlay_rows.h"
#include "compiler/emit/program_builder.h"
#include "dialects/CMF/IR/OverlayCatalog.h"

using namespace mlir;

namespace cortiq::compiler {
namespace {

uint64_t number(DictionaryAttr model, StringRef key) {
  auto value = model.getAs<IntegerAttr>(key);
  return value ? value.getValue().getZExtValue() : 0;
}

std::string text(DictionaryAttr model, StringRef key) {
  auto value = model.getAs<StringAttr>(key);
  return value ? value.str() : std::string();
}

StatusOr<artifact::ManifestT> buildManifest(ModuleOp module, const ArtifactFacts& facts) {
  auto target = module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr);
  auto numerics = module->getAttrOfType<StringAttr>(cmf::kNumericsAttr);
  auto model = module->getAttrOfType<DictionaryAttr>(cmf::kModelAttr);
  if (!target || !numerics || !model)
    return internal_error("the module lacks cmf.target, cmf.numerics or cmf.model");
  artifact::ManifestT manifest;
  manifest.architecture = text(model, "architecture");
  manifest.model_name = text(model, "name");
  manifest.compiler_version = compilerVersion();
  manifest.target = target.getName().str();
  for (auto feature : target.getFeatures().getAsRange<StringAttr>())
    manifest.features.push_back(feature.str());
  bool fast = numerics.getValue() == "fast";
  manifest.numerics = fast ? artifact::Numerics::Fast : artifact::Numerics::Exact;
  manifest.kv_f16 = fast;
  manifest.hidden = number(model, "hidden");
  manifest.layers = number(model, "layers");
  manifest.vocab = number(model, "vocab");
  manifest.token_count = facts.tokenCount;
  manifest.text_absent = facts.textAbsent;
  manifest.trained_context = number(model, "trained_context");
  manifest.max_context = facts.maxContext != 0 ? facts.maxContext : manifest.trained_context;
  manifest.max_batch = facts.maxBatch;
  CORTIQ_ASSIGN_OR_RETURN(manifest.weights, buildWeightTable(module));
  manifest.weights_embedded = facts.embedWeights;
  manifest.source_hash = facts.sourceHash;
  manifest.source_name = facts.sourceName;
  manifest.options = facts.options;
  addOverlayRows(cmf::overlayCatalog(module), manifest);
  return manifest;
}

std::string hex(const std::vector<uint8_t>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (uint8_t byte : bytes)
    out += {kDigits[byte >> 4], kDigits[byte & 15]};
  return out;
}

std::string provenance(const artifact::ManifestT& manifest) {
  return "source: " + manifest.source_name + "\nsource blake2b-256: " + hex(manifest.source_hash) +
         "\ncompiler: cortiq " + manifest.compiler_version + "\ntarget: " + manifest.target +
         "\noptions: " + manifest.options + "\n";
}

} // namespace

std::string compilerVersion() {
  return CORTIQ_VERSION;
}

Status emitArtifact(ModuleOp module, KernelEmitter& emitter, const ModelBytes& model, ArtifactFacts facts,
                    const std::string& path, const WriteOptions& options) {
  ArtifactContents contents;
  CORTIQ_ASSIGN_OR_RETURN(contents.manifest, buildManifest(module, facts));
  CORTIQ_ASSIGN_OR_RETURN(contents.kernels, generateKernels(declaredKernels(module), emitter, options.threads));
  CORTIQ_ASSIGN_OR_RETURN(artifact::ProgramT program, buildProgram(module));
  CORTIQ_ASSIGN_OR_RETURN(KernelPlacement placement, placeKernels(contents.kernels));
  CORTIQ_RETURN_IF_ERROR(setKernelOffsets(program, contents.kernels, placement));
  contents.program = serializeProgram(program);
  contents.tokenizer = std::move(facts.tokenizer);
  contents.provenance = provenance(contents.manifest);
  if (facts.embedWeights) {
    CORTIQ_ASSIGN_OR_RETURN(contents.weights, makeWeightFiller(module, model, contents.manifest.weights));
  }
  return writeArtifact(path, std::move(contents), options);
}

} // namespace cortiq::compiler
