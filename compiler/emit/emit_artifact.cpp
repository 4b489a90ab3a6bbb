#include "compiler/emit/emit_artifact.h"

#include <algorithm>
#include <iterator>

#include "compiler/emit/overlay_rows.h"
#include "compiler/emit/program_builder.h"
#include "compiler/emit/provenance.h"
#include "compiler/emit/shared_weights.h"
#include "compiler/gpu/LowerToGpu.h"
#include "dialects/CMF/IR/OverlayCatalog.h"
#include "formats/artifact/artifact_file.h"
#include "llvm/Support/MathExtras.h"

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

std::vector<std::string> featuresOf(cmf::TargetAttr target) {
  std::vector<std::string> out;
  for (auto feature : target.getFeatures().getAsRange<StringAttr>())
    out.push_back(feature.str());
  return out;
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
  manifest.features = featuresOf(target);
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

/// Why the bank that was asked for holds no expert; empty where it does.
std::string whyNoBank(const artifact::ProgramT& program) {
  if (program.gpu->bank)
    return {};
  for (const auto& step : program.gpu->steps)
    for (uint64_t s = step->first_stage; s < uint64_t{step->first_stage} + step->stages; ++s)
      for (const auto& call : program.stages[s]->calls)
        if (call->op.AsMoeRouteOp() && !step->reason.empty())
          return step->reason + "; --gpu-experts=all may have the GPU run them";
  return "the model has no mixtures of experts";
}

/// Puts a module's program behind those that are in the program section, and a row for it into the manifest.
/// With weights for a GPU it has a form for that too, and `noBank` is whyNoBank of it.
Status addProgram(ModuleOp module, const KernelPlacement& placement, GpuWeights* gpuWeights, bool halfPrompts,
                  ArtifactContents& contents, std::string& noBank) {
  CORTIQ_ASSIGN_OR_RETURN(artifact::ProgramT program, buildProgram(module));
  CORTIQ_RETURN_IF_ERROR(setKernelOffsets(program, contents.kernels, placement));
  if (gpuWeights) {
    CORTIQ_RETURN_IF_ERROR(lowerToGpu(module, *gpuWeights, program).with_prefix("target vulkan"));
    noBank = whyNoBank(program);
    for (const auto& profile : program.gpu_profiles)
      profile->half_prompts = halfPrompts;
    program.gpu->half_prompts = halfPrompts;
  }
  const std::vector<uint8_t> bytes = serializeProgram(program);
  contents.program.resize(llvm::alignTo(contents.program.size(), formats::kProgramAlignment));
  auto target = module->getAttrOfType<cmf::TargetAttr>(cmf::kTargetAttr);
  auto row = std::make_unique<artifact::TargetT>();
  row->name = target.getName().str();
  row->features = featuresOf(target);
  row->program_offset = contents.program.size();
  row->program_bytes = bytes.size();
  contents.manifest.targets.push_back(std::move(row));
  contents.program.insert(contents.program.end(), bytes.begin(), bytes.end());
  return {};
}

} // namespace

std::string compilerVersion() {
  return CORTIQ_VERSION;
}

Status emitArtifact(std::span<const TargetProgram> programs, const ModelBytes& model, ArtifactFacts facts,
                    const std::string& path, const WriteOptions& options) {
  CORTIQ_RETURN_IF_ERROR(checkSharedWeights(programs));
  ArtifactContents contents;
  const ModuleOp first = programs.front().module;
  contents.machine = programs.front().emitter->machine();
  CORTIQ_ASSIGN_OR_RETURN(contents.manifest, buildManifest(first, facts));
  for (const TargetProgram& program : programs) {
    CORTIQ_ASSIGN_OR_RETURN(std::vector<KernelCode> kernels,
                            generateKernels(declaredKernels(program.module), *program.emitter, options.threads));
    std::ranges::move(kernels, std::back_inserter(contents.kernels));
  }
  CORTIQ_ASSIGN_OR_RETURN(const KernelPlacement placement, placeKernels(contents.kernels, contents.machine));
  std::vector<uint32_t> copies;
  GpuWeights gpuWeights{contents.manifest, copies, facts.gpuExperts};
  if (facts.gpuRange != 0)
    gpuWeights.range = facts.gpuRange;
  gpuWeights.half = facts.gpuHalfPrompts;
  std::string noBank;
  for (const TargetProgram& program : programs)
    CORTIQ_RETURN_IF_ERROR(addProgram(program.module, placement, facts.gpu ? &gpuWeights : nullptr,
                                      facts.gpuHalfPrompts, contents, noBank));
  if (facts.gpu && facts.gpuExperts != GpuExperts::kAll && !noBank.empty() && facts.note)
    facts.note("no expert lies in the bank of --gpu-experts: " + noBank);
  if (programs.size() == 1)
    contents.manifest.targets.clear(); // the manifest's own fields say it all
  contents.tokenizer = std::move(facts.tokenizer);
  contents.provenance = provenanceText(contents.manifest, facts.sources);
  if (facts.embedWeights) {
    CORTIQ_ASSIGN_OR_RETURN(contents.weights, makeWeightFiller(first, model, contents.manifest.weights, copies));
  }
  return writeArtifact(path, std::move(contents), options);
}

} // namespace cortiq::compiler
