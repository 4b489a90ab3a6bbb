// cortiq-run: runs a compiled model. Exit codes: 0 done, 2 bad input or command line, 1 a bug of ours.

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/file_kind.h"
#include "formats/input_files.h"
#include "formats/part_files.h"
#include "formats/quote.h"
#include "runtime/cli/artifact_engine.h"
#include "runtime/cli/compiler_process.h"
#include "runtime/cli/run.h"
#include "runtime/cli/run_options.h"
#include "runtime/cli/tool_main.h"
#include "runtime/vulkan/gpu.h"
#include "tools/cortiq-run/doctor/doctor.h"
#include "tools/cortiq-run/model_cache.h"

namespace {

using cortiq::Status;
using cortiq::StatusOr;
using cortiq::runtime::cli::Loaded;
using cortiq::runtime::cli::RunOptions;

constexpr char kProgram[] = "cortiq-run";

/// The command line for `cortiq-compile --interpret`: the same without the choice of the backend.
std::vector<std::string> interpreter_arguments(int argc, char** argv) {
  std::vector<std::string> arguments = {"--interpret"};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--backend")
      ++i;
    else if (!argument.starts_with("--backend="))
      arguments.emplace_back(argument);
  }
  return arguments;
}

Status interpret(const RunOptions& options, cortiq::formats::FileKind kind, int argc, char** argv) {
  if (kind == cortiq::formats::FileKind::kArtifact)
    return cortiq::invalid("the reference backend runs a model: name the CMF or GGUF file instead of the artifact " +
                           cortiq::formats::quote(options.file));
  CORTIQ_ASSIGN_OR_RETURN(const std::string compiler, cortiq::runtime::cli::find_compiler());
  return cortiq::runtime::cli::become(compiler, interpreter_arguments(argc, argv));
}

Status list_devices() {
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<cortiq::runtime::GpuInfo> gpus, cortiq::runtime::list_gpus());
  for (size_t i = 0; i < gpus.size(); ++i)
    std::printf("%zu: %s, %s, %llu MiB, %s%s%s\n", i, gpus[i].name.c_str(), gpus[i].kind.c_str(),
                static_cast<unsigned long long>(gpus[i].memory >> 20), gpus[i].driver.c_str(),
                gpus[i].unusable.empty() ? "" : "; cannot be used: ", gpus[i].unusable.c_str());
  return {};
}

Status run(RunOptions& options, int argc, char** argv) {
  if (options.device == "list")
    return list_devices();
  if (options.doctor)
    return cortiq::tools::run_doctor(options);
  CORTIQ_ASSIGN_OR_RETURN(const cortiq::formats::FileKind kind, cortiq::formats::detect_file_kind(options.file));
  if (options.backend == "reference")
    return interpret(options, kind, argc, argv);
  if (kind == cortiq::formats::FileKind::kArtifact) {
    for (const auto& [option, value] :
         {std::pair("--numerics", &options.numerics), std::pair("--prompt-numerics", &options.prompt_numerics),
          std::pair("--q4tp-ladder", &options.q4tp_ladder), std::pair("--gpu-experts", &options.gpu_experts)})
      if (!value->empty())
        return cortiq::invalid(std::string(option) + " says how to compile a model, and " +
                               cortiq::formats::quote(options.file) +
                               " is compiled already; leave it out, or compile the model again with it");
    options.artifact_target = options.target;
  }
  std::optional<cortiq::tools::CachedArtifact> cached;
  if (kind != cortiq::formats::FileKind::kArtifact)
    options.artifact_key.reset(); // the model's signature is what counts; what is made of it has none
  if (kind != cortiq::formats::FileKind::kArtifact) {
    for (const std::string& file : cortiq::formats::model_files(options.file))
      cortiq::formats::remember_input(file);
    CORTIQ_RETURN_IF_ERROR(cortiq::formats::check_output(options.logits));
    // Who names a GPU wants the model compiled for it.
    const bool names_gpu = !options.device.empty() && options.device != "auto" && options.device != "none";
    if (options.target.empty() && (names_gpu || !options.gpu_experts.empty()))
      options.target = "native,vulkan";
    StatusOr<cortiq::tools::CachedArtifact> artifact = cortiq::tools::compile_into_cache(options);
    if (!artifact.ok())
      return artifact.status();
    cached.emplace(*std::move(artifact));
  }
  CORTIQ_ASSIGN_OR_RETURN(Loaded loaded,
                          cortiq::runtime::cli::load_artifact_engine(cached ? cached->path() : options.file, options));
  cached.reset(); // what is mapped stays; a temporary file needs no name any more
  CORTIQ_RETURN_IF_ERROR(cortiq::runtime::cli::run(options, loaded));
  if (options.verify && !options.prompt && !options.tokens && !options.chat)
    std::printf("%s: every hash is right\n", cortiq::formats::quote(options.file).c_str());
  return {};
}

} // namespace

int main(int argc, char** argv) {
  cortiq::formats::prepare_to_write();
  return cortiq::runtime::cli::run_tool(
      kProgram, "this model; a shorter --max-context, --kv q8, or --memory for a model of experts takes less",
      [&]() -> StatusOr<int> {
        RunOptions options;
        const auto outcome = cortiq::runtime::cli::parse_run_options(argc, argv, kProgram, options);
        if (!outcome.run)
          return outcome.exit;
        CORTIQ_RETURN_IF_ERROR(run(options, argc, argv));
        return 0;
      });
}
