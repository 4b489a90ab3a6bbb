// cortiq-bench: measures whole models and single kernels. Exit codes: 0 done, 2 bad input or command line, 1 a bug.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "formats/artifact/artifact_file.h"
#include "formats/file_guard.h"
#include "runtime/cpu/bandwidth.h"
#include "runtime/cpu/limits.h"
#include "tools/cortiq-bench/kernel_bench.h"
#include "tools/cortiq-bench/model_bench.h"

namespace {

using cortiq::Status;

int complain(const std::string& sentence, int code) {
  if (!sentence.empty()) // a child process has said it already
    std::fprintf(stderr, "cortiq-bench: %s\n", sentence.c_str());
  return code;
}

struct CommandLine {
  cortiq::bench::ModelBenchOptions model;
  cortiq::bench::KernelBenchOptions kernel;
  unsigned threads = 0;
  uint64_t seed = 0;
  bool bandwidth = false;
};

void declare(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.model.file, "an artifact: measure prefill and decode");
  app.add_option("--prefill", line.model.prefill, "tokens of the prompt")->capture_default_str();
  app.add_option("--decode", line.model.decode, "tokens generated after it")->capture_default_str();
  app.add_option("--repeat", line.model.repeat, "runs, of which the fastest counts")->capture_default_str();
  app.add_option("--threads", line.threads, "threads; 0: what affinity, cgroup quota and cores allow")
      ->check(CLI::Range(0u, 1024u));
  app.add_option("--kv", line.model.kv, "element type of the key/value cache")->check(CLI::IsMember({"f32", "f16"}));
  app.add_option("--fill", line.seed, "fill an artifact compiled with --weights=none from this seed");
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
  app.add_option("--numerics", line.kernel.numerics, "fast or exact")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->capture_default_str()
      ->group(kernel);
  app.add_option("--target", line.kernel.target, "instruction set (default: native)")->group(kernel);
}

Status run(CLI::App& app, CommandLine& line) {
  if (!line.kernel.codec.empty()) {
    if (line.kernel.shape.empty() || line.kernel.weights.empty() || line.kernel.x.empty() || line.kernel.out.empty())
      return cortiq::invalid("--gemv needs --shape, --weights, --x and -o; see --help");
    line.kernel.threads = line.threads == 0 ? 1 : line.threads;
    return cortiq::bench::bench_kernel(line.kernel);
  }
  if (line.bandwidth) {
    const unsigned threads =
        line.threads != 0 ? line.threads : cortiq::runtime::default_threads(cortiq::runtime::read_cpu_limits());
    std::printf("%.2f GB/s with %u threads\n", cortiq::runtime::measure_read_bandwidth(threads), threads);
    return {};
  }
  if (line.model.file.empty())
    return cortiq::invalid("it needs a FILE, --gemv or --bandwidth; see --help");
  line.model.threads = line.threads;
  if (app.count("--fill") != 0)
    line.model.fill_seed = line.seed;
  return cortiq::bench::bench_model(line.model);
}

} // namespace

int main(int argc, char** argv) {
  cortiq::formats::install_file_guard("cortiq-bench");
  try {
    CLI::App app("Measures compiled models and single kernels.", "cortiq-bench");
    app.set_version_flag("--version", "cortiq-bench " CORTIQ_VERSION " (artifact schema " +
                                          std::to_string(cortiq::formats::kArtifactSchemaVersion) + ")");
    CommandLine line;
    declare(app, line);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& done) {
      return app.exit(done);
    } catch (const CLI::ParseError& error) {
      return complain(std::string(error.what()) + "; see --help", 2);
    }
    const Status status = run(app, line);
    return status.ok() ? 0 : complain(status.message(), cortiq::exit_code(status));
  } catch (const std::bad_alloc&) {
    return complain("there is not enough memory for this", 2);
  } catch (const std::exception& error) {
    return complain(std::string("internal error: ") + error.what(), 1);
  }
}
