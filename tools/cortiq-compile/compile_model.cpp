#include "tools/cortiq-compile/compile.h"

#include <cstdio>
#include <filesystem>
#include <functional>

#include "codegen/kernels/build_kernel.h"
#include "compiler/frontend/LoadModel.h"
#include "compiler/pipelines/Pipelines.h"
#include "compiler/target/target_attr.h"
#include "formats/artifact/artifact_hash.h"
#include "formats/input_files.h"
#include "formats/quote.h"
#include "runtime/text/text_section.h"
#include "runtime/text/text_source.h"
#include "tools/cortiq-compile/session.h"
#include "tools/cortiq-compile/signatures.h"

namespace cortiq::tools {
namespace {

struct ModelParts {
  size_t count;
  compiler::ModelBytes bytes;
  std::function<std::string(size_t)> path;
};

ModelParts parts_of(const compiler::LoadedModel& model) {
  auto of = [](const auto* file) -> ModelParts {
    return {file->file_count(), [file](uint32_t i) { return file->file_bytes(i); },
            [file](size_t i) { return file->file_path(i); }};
  };
  return model.cmf ? of(model.cmf.get()) : of(model.gguf.get());
}

std::string name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

/// Puts the model's files in front of what else it was made of. A model of several is known by the hash over its parts'
/// hashes. Without weights nothing in the artifact depends on what would be hashed.
void add_sources(const ModelParts& parts, compiler::ArtifactFacts& facts) {
  std::vector<uint8_t> hashes;
  std::vector<compiler::SourceFile> files;
  for (uint32_t i = 0; i < parts.count; ++i) {
    compiler::SourceFile& file = files.emplace_back();
    file.name = name_of(parts.path(i));
    file.bytes = parts.bytes(i).size();
    if (!facts.embedWeights)
      continue;
    const formats::Hash256 hash = formats::hash256(parts.bytes(i));
    file.hash.assign(hash.begin(), hash.end());
    hashes.insert(hashes.end(), hash.begin(), hash.end());
  }
  facts.sources.insert(facts.sources.begin(), files.begin(), files.end());
  if (parts.count == 1 || hashes.empty()) {
    facts.sourceHash = std::move(hashes);
    return;
  }
  const formats::Hash256 hash = formats::hash256(hashes);
  facts.sourceHash.assign(hash.begin(), hash.end());
}

void warn(const std::string& sentence) {
  std::fprintf(stderr, "cortiq-compile: note: %s\n", sentence.c_str());
}

// `sentence` with the folders of its file names left out: the same model gives the same artifact wherever it lies.
std::string without_folders(std::string sentence, const std::string& model) {
  const std::filesystem::path path(model);
  for (const std::filesystem::path& file : {path, path.parent_path() / "tokenizer.json"}) {
    const std::string quoted = formats::quote(file.string());
    if (const size_t at = sentence.find(quoted); at != std::string::npos)
      sentence.replace(at, quoted.size(), formats::quote(file.filename().string()));
  }
  return sentence;
}

StatusOr<std::vector<uint8_t>> text_section(const compiler::LoadedModel& model, compiler::ArtifactFacts& facts) {
  namespace text = runtime::text;
  CORTIQ_ASSIGN_OR_RETURN(const text::TextSource source,
                          model.cmf ? text::read_text_source(*model.cmf) : text::read_text_source(*model.gguf));
  for (const std::string& sentence : source.warnings)
    warn(sentence);
  if (!source.file.empty()) {
    const formats::Hash256 hash = formats::hash256(source.tokenizer_json);
    facts.sources.push_back({name_of(source.file), source.tokenizer_json.size(), {hash.begin(), hash.end()}});
  }
  return text::pack_text_section(source.tokenizer_json, source.config);
}

// A model whose tokenizer is missing or not supported still runs on token ids. Whoever asks its artifact for text then
// reads why it has none.
Status add_tokenizer(const std::string& path, const compiler::LoadedModel& model, compiler::ArtifactFacts& facts) {
  namespace text = runtime::text;
  StatusOr<std::vector<uint8_t>> section = text_section(model, facts);
  if (!section.ok()) {
    warn(section.status().message() + "; the artifact will work on token ids only");
    facts.textAbsent = without_folders(section.status().message(), path);
    return {};
  }
  facts.tokenizer = *std::move(section);
  CORTIQ_ASSIGN_OR_RETURN(text::TextModel opened, text::open_text_section(facts.tokenizer));
  facts.tokenCount = opened.tokenizer.vocab_size();
  return {};
}

// Asked before any work that takes time.
Status check_kernels(mlir::ModuleOp module, const std::string& model) {
  for (const codegen::KernelSpec& spec : compiler::declaredKernels(module))
    if (const Status status = codegen::can_build(spec); !status.ok())
      return status.with_prefix(formats::quote(model));
  return {};
}

/// A model's program for one target, and what makes its kernels.
struct TargetCode {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<compiler::KernelEmitter> emitter;
};

/// The fused graph in `code` becomes a program, or what --emit asks to see on the way there.
Status lower(CompileSession& session, const CompileOptions& options, const compiler::Target& target, TargetCode& code) {
  mlir::ModuleOp module = *code.module;
  module->setAttr(cmf::kTargetAttr, compiler::targetAttr(&session.context(), target));
  CORTIQ_RETURN_IF_ERROR(session.run_passes(
      module, [&](mlir::OpPassManager& passes) { compiler::buildTargetPipeline(passes, options.numerics); }));
  if (options.emit == EmitKind::kCmf)
    return {};
  CORTIQ_RETURN_IF_ERROR(session.run_passes(module, [&](mlir::OpPassManager& passes) {
    compiler::buildProgramPipeline(passes,
                                   {.path = options.path, .room = options.path_memory, .bf16 = options.half_prompts});
  }));
  CORTIQ_ASSIGN_OR_RETURN(code.emitter, compiler::makeKernelEmitter(target.name));
  return {};
}

} // namespace

Status compile_model(const CompileOptions& options) {
  CompileSession session(options);
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<compiler::Target> targets, session.targets());
  if (options.emit != EmitKind::kArtifact)
    CORTIQ_RETURN_IF_ERROR(session.only_target("--emit").status());
  CORTIQ_ASSIGN_OR_RETURN(
      compiler::LoadedModel model,
      compiler::loadModel(options.model, session.context(),
                          {.maxContext = options.max_context, .vectorLadder = options.q4tp_ladder == "vector"}));
  mlir::ModuleOp module = *model.module;
  for (const std::string& sentence : model.warnings)
    warn(sentence);
  CORTIQ_RETURN_IF_ERROR(formats::check_output(options.output));
  CORTIQ_RETURN_IF_ERROR(check_signatures(model, options.model, options.require_key));
  session.lap("read the model");

  CORTIQ_RETURN_IF_ERROR(session.run_passes(
      module, [&](mlir::OpPassManager& passes) { compiler::buildFusionPipeline(passes, options.task); }));
  // From here on a target at a time. The last one takes the module itself.
  std::vector<TargetCode> codes;
  for (size_t i = 0; i < targets.size(); ++i) {
    TargetCode& code = codes.emplace_back();
    code.module = i + 1 < targets.size() ? mlir::OwningOpRef(module.clone()) : std::move(model.module);
    CORTIQ_RETURN_IF_ERROR(lower(session, options, targets[i], code));
  }
  session.lap("run the passes");
  if (options.emit == EmitKind::kCmf || options.emit == EmitKind::kKernel)
    return session.write_ir(*codes[0].module);
  for (TargetCode& code : codes)
    CORTIQ_RETURN_IF_ERROR(check_kernels(*code.module, options.model));
  if (options.emit != EmitKind::kArtifact)
    return session.write_kernels(*codes[0].module, *codes[0].emitter);
  std::vector<compiler::TargetProgram> programs;
  for (const TargetCode& code : codes)
    programs.push_back({*code.module, code.emitter.get()});

  compiler::ArtifactFacts facts;
  facts.maxContext = options.max_context;
  facts.maxBatch = options.max_batch;
  facts.gpu = options.vulkan;
  facts.gpuExperts = options.gpu_experts == "bank"        ? compiler::GpuExperts::kBank
                     : options.gpu_experts == "bank-bf16" ? compiler::GpuExperts::kBankBf16
                                                          : compiler::GpuExperts::kAll;
  facts.gpuRange = options.gpu_range;
  facts.gpuHalfPrompts = options.half_prompts;
  facts.embedWeights = options.weights == "embed";
  facts.options = shaping_options(options);
  facts.sourceName = name_of(options.model);
  facts.note = warn;
  CORTIQ_RETURN_IF_ERROR(add_tokenizer(options.model, model, facts));
  session.lap("pack the tokenizer");
  const ModelParts parts = parts_of(model);
  add_sources(parts, facts);
  session.lap("hash the model");
  Status written = session.write_artifact(programs, parts.bytes, std::move(facts));
  session.lap("generate kernels, pack weights, write");
  if (written.ok())
    session.say_done();
  return written;
}

} // namespace cortiq::tools
