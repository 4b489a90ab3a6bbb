// cortiq-bench: measures whole models, their quality and single kernels. Exit codes: 0 done, 2 bad input or command
// line, 1 a bug.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <string>

#include "formats/artifact/artifact_file.h"
#include "formats/file_guard.h"
#include "formats/part_files.h"
#include "formats/standard_output.h"
#include "runtime/cli/memory_size.h"
#include "runtime/cli/whole_number.h"
#include "runtime/cpu/bandwidth.h"
#include "runtime/cpu/limits.h"
#include "runtime/evaluate/perplexity.h"
#include "tools/cortiq-bench/kernel_bench.h"
#include "tools/cortiq-bench/model_bench.h"
#include "tools/cortiq-bench/quality_bench.h"

namespace {

using cortiq::Status;
using cortiq::runtime::cli::memory_size;
using cortiq::runtime::cli::whole_number;

constexpr uint64_t kMostTokens = uint64_t{1} << 32;
constexpr uint64_t kMostRuns = 1000000;
constexpr uint64_t kMostThreads = 1024;

int complain(const std::string& sentence, int code) {
  if (!sentence.empty()) // a child process has said it already
    std::fprintf(stderr, "cortiq-bench: %s\n", sentence.c_str());
  return code;
}

struct CommandLine {
  cortiq::bench::ModelBenchOptions model;
  cortiq::bench::KernelBenchOptions kernel;
  cortiq::bench::QualityBenchOptions quality;
  std::string numerics, target, memory;
  unsigned threads = 0;
  uint64_t seed = 0;
  bool bandwidth = false;
};

void declare(CLI::App& app, CommandLine& line) {
  app.add_option(
      "FILE", line.model.file,
      "an artifact: measure prefill and decode; with --perplexity a model too, which is then compiled first");
  app.add_option("--prefill", line.model.prefill, "tokens of the prompt")
      ->check(whole_number(0, kMostTokens))
      ->capture_default_str();
  app.add_option("--decode", line.model.decode, "tokens generated after it")
      ->check(whole_number(0, kMostTokens))
      ->capture_default_str();
  app.add_option("--repeat", line.model.repeat, "runs, of which the fastest counts")
      ->check(whole_number(1, kMostRuns))
      ->capture_default_str();
  app.add_option("--threads", line.threads, "threads; 0: what affinity, cgroup quota and cores allow")
      ->check(whole_number(0, kMostThreads));
  app.add_option("--kv", line.model.kv, "element type of the key/value cache")->check(CLI::IsMember({"f32", "f16"}));
  app.add_option("--memory", line.memory,
                 "budget for weights, cache and work space, as in 8G; experts are read as needed")
      ->check(memory_size())
      ->type_name("SIZE");
  app.add_option("--fill", line.seed, "fill an artifact compiled with --weights=none from this seed")
      ->check(whole_number(0));
  app.add_flag("--json", line.model.json, "print one JSON object");
  app.add_flag("--verbose", line.model.verbose, "print one line a kernel on stderr");
  app.add_flag("--bandwidth", line.bandwidth, "measure how fast this machine reads memory");

  const std::string kernel = "One kernel";
  app.add_option("--gemv", line.kernel.codec, "compile and run y = W x for this codec (gguf:Q4_K, cmf:q4tp)")
      ->type_name("FAMILY:SCHEME")
      ->group(kernel);
  app.add_option("--shape", line.kernel.shape, "of W")->type_name("ROWSxCOLS")->group(kernel);
  app.add_option("--weights", line.kernel.weights, "the payload of W")->type_name("FILE")->group(kernel);
  app.add_option("--x", line.kernel.x, "inputs, float32")->type_name("X.f32")->group(kernel);
  app.add_option("-o,--output", line.kernel.out, "results, float32")->type_name("Y.f32")->group(kernel);

  const std::string quality = "Quality on a text";
  app.add_option("--perplexity", line.quality.text,
                 "how well FILE predicts this text. It is cut into windows of --context tokens; each starts from an "
                 "empty state (and the begin token, where the model has one), and the tokens of its second half are "
                 "scored. What does not fill a window is left out")
      ->type_name("TEXT")
      ->group(quality);
  app.add_option("--context", line.quality.context, "tokens a window (default: 512, or what the artifact holds)")
      ->check(whole_number(cortiq::runtime::kLeastWindow, kMostTokens))
      ->type_name("N")
      ->group(quality);
  app.add_option("--kl", line.quality.reference,
                 "and how far its predictions diverge from this artifact's or model's (compiled as exact); the word "
                 "exact: from FILE's own, which is a model then")
      ->type_name("REFERENCE")
      ->group(quality);

  const std::string compile = "What is compiled, by --gemv and for --perplexity";
  app.add_option("--numerics", line.numerics, "fast (default) or exact")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->group(compile);
  app.add_option("--target", line.target, "instruction set (default: native)")->group(compile);
}

/// The first of `options` that was given and that `mode` would ignore.
Status refuse(const CLI::App& app, const std::string& mode, std::initializer_list<const char*> options) {
  for (const char* option : options)
    if (app.count(option) != 0)
      return cortiq::invalid(std::string(option) + " does not go with " + mode + "; see --help");
  return {};
}

Status run_quality(const CLI::App& app, CommandLine& line) {
  if (line.model.file.empty())
    return cortiq::invalid("--perplexity needs a FILE, an artifact or a model; see --help");
  CORTIQ_RETURN_IF_ERROR(refuse(app, "--perplexity",
                                {"--gemv", "--bandwidth", "--prefill", "--decode", "--repeat", "--fill", "--memory",
                                 "--shape", "--weights", "--x", "-o"}));
  line.quality.file = line.model.file;
  line.quality.numerics = line.numerics;
  line.quality.target = line.target;
  line.quality.kv = line.model.kv;
  line.quality.threads = line.threads;
  line.quality.json = line.model.json;
  line.quality.verbose = line.model.verbose;
  return cortiq::bench::bench_quality(line.quality);
}

Status run(CLI::App& app, CommandLine& line) {
  if (app.count("--perplexity") != 0)
    return run_quality(app, line);
  CORTIQ_RETURN_IF_ERROR(refuse(app, "anything but --perplexity", {"--context", "--kl"}));
  if (!line.kernel.codec.empty()) {
    if (line.kernel.shape.empty() || line.kernel.weights.empty() || line.kernel.x.empty() || line.kernel.out.empty())
      return cortiq::invalid("--gemv needs --shape, --weights, --x and -o; see --help");
    CORTIQ_RETURN_IF_ERROR(refuse(app, "--gemv",
                                  {"FILE", "--bandwidth", "--prefill", "--decode", "--repeat", "--kv", "--fill",
                                   "--memory", "--json", "--verbose"}));
    if (!line.numerics.empty())
      line.kernel.numerics = line.numerics;
    line.kernel.target = line.target;
    line.kernel.threads = line.threads == 0 ? 1 : line.threads;
    return cortiq::bench::bench_kernel(line.kernel);
  }
  if (line.bandwidth) {
    CORTIQ_RETURN_IF_ERROR(refuse(app, "--bandwidth",
                                  {"FILE", "--prefill", "--decode", "--repeat", "--kv", "--fill", "--memory", "--json",
                                   "--verbose", "--numerics", "--target", "--shape", "--weights", "--x", "-o"}));
    const unsigned threads =
        line.threads != 0 ? line.threads : cortiq::runtime::default_threads(cortiq::runtime::read_cpu_limits());
    std::printf("%.2f GB/s with %u threads\n", cortiq::runtime::measure_read_bandwidth(threads), threads);
    return {};
  }
  if (line.model.file.empty())
    return cortiq::invalid("it needs a FILE, --gemv or --bandwidth; see --help");
  CORTIQ_RETURN_IF_ERROR(
      refuse(app, "measuring an artifact's speed", {"--numerics", "--target", "--shape", "--weights", "--x", "-o"}));
  if (line.model.prefill == 0 && line.model.decode == 0)
    return cortiq::invalid("--prefill 0 and --decode 0 leave nothing to measure; see --help");
  line.model.threads = line.threads;
  line.model.memory = cortiq::runtime::cli::parse_memory_size(line.memory).value_or(0);
  if (app.count("--fill") != 0)
    line.model.fill_seed = line.seed;
  return cortiq::bench::bench_model(line.model);
}

} // namespace

int main(int argc, char** argv) {
  cortiq::formats::install_file_guard("cortiq-bench");
  cortiq::formats::prepare_to_write();
  try {
    CLI::App app("Measures compiled models, how well they predict a text, and single kernels.", "cortiq-bench");
    app.set_version_flag("--version", "cortiq-bench " CORTIQ_VERSION " (artifact schema " +
                                          std::to_string(cortiq::formats::kArtifactSchemaVersion) + ")");
    CommandLine line;
    declare(app, line);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& done) {
      return cortiq::formats::exit_code_after_output("cortiq-bench", app.exit(done));
    } catch (const CLI::ParseError& error) {
      return complain(std::string(error.what()) + "; see --help", 2);
    }
    const Status status = run(app, line);
    const int code = status.ok() ? 0 : complain(status.message(), cortiq::exit_code(status));
    return cortiq::formats::exit_code_after_output("cortiq-bench", code);
  } catch (const std::bad_alloc&) {
    return complain("there is not enough memory for this", 2);
  } catch (const std::exception& error) {
    return complain(std::string("internal error: ") + error.what(), 1);
  }
}
