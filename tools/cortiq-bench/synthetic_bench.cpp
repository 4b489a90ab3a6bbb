#include "tools/cortiq-bench/synthetic_bench.h"

#include <filesystem>

#include "formats/quote.h"
#include "runtime/cli/compiler_process.h"
#include "tools/cortiq-bench/synthetic/model_file.h"
#include "tools/cortiq-bench/temporary_folder.h"

namespace cortiq::bench {
namespace {

Status compile(const SyntheticBenchOptions& options, const SyntheticSpec& spec, const std::string& folder,
               const std::string& out) {
  CORTIQ_ASSIGN_OR_RETURN(const std::string compiler, runtime::cli::find_compiler());
  const std::string model = folder + "/" + spec.shape.name.substr(0, 60) + "." + model_extension(spec);
  CORTIQ_RETURN_IF_ERROR(write_model(spec, Payloads::kAbsent, model));
  std::vector<std::string> arguments = {model, "-o", out, "--weights=none"};
  if (!options.numerics.empty())
    arguments.push_back("--numerics=" + options.numerics);
  if (!options.prompt_numerics.empty())
    arguments.push_back("--prompt-numerics=" + options.prompt_numerics);
  if (!options.target.empty())
    arguments.push_back("--target=" + options.target);
  if (!options.gpu_experts.empty())
    arguments.push_back("--gpu-experts=" + options.gpu_experts);
  return runtime::cli::run_compiler(compiler, arguments);
}

} // namespace

Status bench_synthetic(const SyntheticBenchOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(SyntheticSpec spec, parse_synthetic(options.spec));
  spec.seed = options.model.fill_seed.value_or(1);
  const std::string extension = std::filesystem::path(options.output).extension();
  if (!options.output.empty() && extension != ".cqa") {
    if (extension == "." + model_extension(spec))
      return write_model(spec, Payloads::kRandom, options.output);
    return invalid("--synthetic: " + std::string(spec.codec->name) + " goes into " +
                   formats::quote("." + model_extension(spec)) + " or an artifact, '.cqa', not into " +
                   formats::quote(options.output));
  }
  CORTIQ_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  if (!options.output.empty())
    return compile(options, spec, folder.path(), options.output);
  ModelBenchOptions model = options.model;
  model.files = {folder.path() + "/model.cqa"};
  model.fill_seed = spec.seed;
  CORTIQ_RETURN_IF_ERROR(compile(options, spec, folder.path(), model.files[0]));
  return bench_models(model);
}

} // namespace cortiq::bench
