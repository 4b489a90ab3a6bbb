// cortiq-bench: measures whole models, their quality and single kernels. Exit codes: 0 done, 2 bad input or command
// line, 1 a bug.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string>

#include "formats/artifact/artifact_file.h"
#include "formats/part_files.h"
#include "formats/signing/signer_key.h"
#include "runtime/cli/device_word.h"
#include "runtime/cli/gpu_room.h"
#include "runtime/cli/memory_size.h"
#include "runtime/cli/tool_main.h"
#include "runtime/cli/whole_number.h"
#include "runtime/cli/word.h"
#include "runtime/cpu/bandwidth.h"
#include "runtime/evaluate/perplexity.h"
#include "tools/cortiq-bench/barrier_bench.h"
#include "tools/cortiq-bench/batch_bench.h"
#include "tools/cortiq-bench/kernel_bench.h"
#include "tools/cortiq-bench/kernel_speed.h"
#include "tools/cortiq-bench/machine/machine.h"
#include "tools/cortiq-bench/model_bench.h"
#include "tools/cortiq-bench/quality_bench.h"
#include "tools/cortiq-bench/static_bench.h"
#include "tools/cortiq-bench/synthetic/shape.h"
#include "tools/cortiq-bench/synthetic_bench.h"
#include "tools/cortiq-bench/thread_list.h"

namespace {

using cortiq::Status;
using cortiq::runtime::cli::add_gpu_room;
using cortiq::runtime::cli::memory_size;
using cortiq::runtime::cli::whole_number;

constexpr char kProgram[] = "cortiq-bench";

constexpr uint64_t kMostTokens = uint64_t{1} << 32;
constexpr uint64_t kMostRuns = 1000000;
constexpr uint64_t kMostSeconds = 3600;

struct CommandLine {
  cortiq::bench::ModelBenchOptions model;
  cortiq::bench::KernelBenchOptions kernel;
  cortiq::bench::QualityBenchOptions quality;
  cortiq::runtime::cli::GpuRoomWords gpu_room;
  std::string numerics, prompt_numerics, target, gpu_experts, memory, output, sequences, synthetic, threads, counted,
      processors, key;
  uint64_t seed = 0;
  bool bandwidth = false, barriers = false, machine = false;
};

void declare(CLI::App& app, CommandLine& line) {
  app.add_option(
      "FILE", line.model.files,
      "artifacts: measure prefill and decode of each; with --perplexity one, or a model, which is then compiled first");
  app.add_option("--prefill", line.model.prefill, "tokens of the prompt")
      ->check(whole_number(0, kMostTokens))
      ->capture_default_str();
  app.add_option("--decode", line.model.decode, "tokens generated after it")
      ->check(whole_number(0, kMostTokens))
      ->capture_default_str();
  app.add_option(
         "--sequences", line.sequences,
         "compute so many texts together instead, as cortiq-serve does, and hold what comes of each against a session "
         "of its own. Several with commas between, as in 1,8,64, are measured in turn")
      ->type_name("N[,N...]");
  app.add_option("--repeat", line.model.repeat, "runs, of which the fastest counts")
      ->check(whole_number(1, kMostRuns))
      ->capture_default_str();
  app.add_option("--seconds", line.model.seconds,
                 "more runs of each phase until they have taken so long: to see with --json how its speed changes")
      ->check(whole_number(1, kMostSeconds));
  app.add_option(
         "-t,--threads", line.threads,
         "threads; 0 (default): what affinity, cgroup quota and cores allow. Several with commas between, as in "
         "16,8,4,1, are measured in turn")
      ->type_name("N[,N...]");
  app.add_option("--kv", line.model.kv, "element type of the key/value cache")
      ->check(CLI::IsMember({"f32", "f16", "q8"}));
  app.add_option("--memory", line.memory,
                 "budget for weights, cache and work space, as in 8G; experts are read as needed")
      ->check(memory_size())
      ->type_name("SIZE");
  app.add_option("--pages", line.model.pages,
                 "pages of memory: as the system gives them, or large: weights are copied at load, caches and work "
                 "space take what the context could need")
      ->check(CLI::IsMember({"system", "large"}))
      ->capture_default_str();
  app.add_option("--numa", line.model.numa,
                 "several memory nodes: interleave memory and bind workers (auto), or neither (off)")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str();
  app.add_option(
         "--device", line.model.device,
         "numbers of the GPUs (cortiq-run --device list), commas between them, that run an artifact of --target "
         "vulkan")
      ->check([](const std::string& word) {
        return cortiq::runtime::cli::parse_devices(word).empty()
                   ? "takes numbers of GPUs with commas between them, not '" + word +
                         "' (cortiq-run --device list shows them)"
                   : std::string();
      });
  add_gpu_room(app, line.gpu_room, "");
  app.add_option("--fill", line.seed, "fill an artifact compiled with --weights=none from this seed")
      ->check(whole_number(0));
  app.add_option("--require-key", line.key,
                 "refuse artifacts that are not signed with this ed25519 key: 64 digits, or the file that holds them")
      ->type_name("KEY")
      ->check(cortiq::runtime::cli::some_word);
  app.add_flag("--no-machine", line.model.no_machine, "do not measure how fast the machine reads beside a model");
  app.add_flag("--json", line.model.json, "print one JSON object");
  app.add_flag("--verbose", line.model.verbose, "print one line a kernel on stderr");

  const std::string profile = "Where the time goes";
  app.add_flag("--profile", line.model.profile,
               "time of every operation, its bytes, GB/s and share of the machine's measured read bandwidth and peak, "
               "and the "
               "time outside of operations")
      ->group(profile);
  app.add_option("--trace", line.model.trace,
                 "write when each thread did what, in the first 4 steps of prefill and of decode, as browsers show it "
                 "(ui.perfetto.dev); of the first number of threads")
      ->type_name("OUT.json")
      ->group(profile);
  app.add_option(
         "--roofline", line.model.roofline,
         "draw where each operation stands below the machine's read bandwidth and peaks; of the first number of "
         "threads")
      ->type_name("OUT.svg")
      ->group(profile);

  const std::string machine = "This machine";
  app.add_flag(
         "--machine", line.machine,
         "measure, for each number of threads, how fast memory and a file mapping are read and what the arithmetic "
         "units reach")
      ->group(machine);
  app.add_flag("--bandwidth", line.bandwidth, "measure only how fast this machine reads memory")->group(machine);

  app.add_flag("--barriers", line.barriers,
               "measure what a stage of a step costs when it has nothing to do, for each number of threads")
      ->group(machine);

  const std::string synthetic = "Models of any shape";
  app.add_option(
         "--synthetic", line.synthetic,
         "measure a model with random weights (--fill SEED, default 1): SHAPE[,SIZE=N...]:CODEC[,attention=CODEC]"
         "[,head=CODEC], as in 3b:q4_0 or 30b-a3b,layers=12:q4_k. Shapes: " +
             cortiq::bench::named_shapes() +
             ". Sizes: layers, hidden, ffn, heads, kv-heads, head-dim, vocab, context, experts, used, expert-ffn; "
             "without a shape, layers, hidden, ffn, heads and vocab are needed. With -o it is only written: OUT.cqa, "
             "an "
             "artifact without weights, small, for another machine (FILE --fill SEED); OUT.gguf or OUT.cmf, a "
             "model with its weights")
      ->type_name("SPEC")
      ->group(synthetic);

  const std::string kernel = "One kernel";
  app.add_option("--gemv", line.kernel.codec,
                 "compile y = W x for this codec (gguf:Q4_K, cmf:q4tp) and measure it on random weights, with one "
                 "token and with "
                 "a full batch; or, with --weights, --x and -o, compute results")
      ->type_name("FAMILY:SCHEME")
      ->group(kernel);
  app.add_option("--shape", line.kernel.shape, "of W")->type_name("ROWSxCOLS")->group(kernel);
  app.add_option("--weights", line.kernel.weights, "the payload of W, to compute results with")
      ->type_name("FILE")
      ->group(kernel);
  app.add_option("--x", line.kernel.x, "inputs, float32")->type_name("X.f32")->group(kernel);
  app.add_option("-o,--output", line.output, "results, float32; with --synthetic the file to write")
      ->type_name("OUT")
      ->group(kernel);

  const std::string counted = "What code costs";
  app.add_option("--static", line.counted,
                 "count instructions and loads in the loops of the kernels compiled for these codecs (with --shape, "
                 "default " +
                     std::string(cortiq::bench::kStaticShape) +
                     ") or for a model, for 32 weights of one token; where llvm-mca-19 is installed with its estimate "
                     "of cycles. Nothing is run: --target names any of the compiler's, several with commas between")
      ->type_name("CODEC[,CODEC...]|MODEL")
      ->group(counted);
  app.add_option("--cpu", line.processors, "processors to estimate for, by LLVM's names (default: some of each target)")
      ->type_name("NAME[,NAME...]")
      ->group(counted);

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

  const std::string compile = "What is compiled, by --gemv, --static, --synthetic and for --perplexity";
  app.add_option("--numerics", line.numerics, "fast (default) or exact")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->group(compile);
  app.add_option("--gpu-experts", line.gpu_experts,
                 "with --synthetic and --target vulkan, a mixture's experts on the GPU: all, bank or bank-bf16")
      ->check(CLI::IsMember({"all", "bank", "bank-bf16"}))
      ->group(compile);
  app.add_option("--prompt-numerics", line.prompt_numerics,
                 "same or half, of a synthetic model (default: as cortiq-compile has it)")
      ->check(CLI::IsMember({"same", "half"}))
      ->group(compile);
  app.add_option("--target", line.target,
                 "instruction set (default: native); of an artifact: which of those that it holds is measured "
                 "(default: the best that this machine has)")
      ->type_name("NAME")
      ->group(compile);
}

/// The first of `options` that was given and that `mode` would ignore.
Status refuse(const CLI::App& app, const std::string& mode, std::initializer_list<const char*> options) {
  for (const char* option : options)
    if (app.count(option) != 0)
      return cortiq::invalid(std::string(option) + " does not go with " + mode + "; see --help");
  return {};
}

/// The first option that was given and is not among `taken`: `mode` would ignore it.
Status refuse_others(const CLI::App& app, const std::string& mode, std::initializer_list<const char*> taken) {
  for (const CLI::Option* option : app.get_options())
    if (option->count() != 0 &&
        std::ranges::none_of(taken, [&](const char* name) { return option == app.get_option(name); }))
      return cortiq::invalid(option->get_name() + " does not go with " + mode + "; see --help");
  return {};
}

/// The one number of threads of modes that take no list.
cortiq::StatusOr<unsigned> one_count(const std::string& text, const char* mode) {
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<unsigned> counts, cortiq::bench::parse_threads(text));
  if (counts.size() != 1)
    return cortiq::invalid(std::string("--threads with ") + mode + " is one number; see --help");
  return counts[0];
}

Status run_quality(const CLI::App& app, CommandLine& line) {
  if (line.model.files.size() != 1)
    return cortiq::invalid("--perplexity needs one FILE, an artifact or a model; see --help");
  CORTIQ_RETURN_IF_ERROR(
      refuse_others(app, "--perplexity",
                    {"FILE", "--perplexity", "--context", "--kl", "--numerics", "--target", "--kv", "--threads",
                     "--device", "--device-memory", "--bank-slots", "--bank-segments", "--json", "--verbose"}));
  line.quality.file = line.model.files[0];
  line.quality.numerics = line.numerics;
  line.quality.target = line.target;
  line.quality.kv = line.model.kv;
  line.quality.device = line.model.device;
  line.quality.gpu_room = line.gpu_room.room();
  CORTIQ_ASSIGN_OR_RETURN(line.quality.threads, one_count(line.threads, "--perplexity"));
  line.quality.json = line.model.json;
  line.quality.verbose = line.model.verbose;
  return cortiq::bench::bench_quality(line.quality);
}

Status run_kernel(const CLI::App& app, CommandLine& line) {
  if (line.kernel.shape.empty())
    return cortiq::invalid("--gemv needs --shape; see --help");
  CORTIQ_RETURN_IF_ERROR(refuse_others(
      app, "--gemv", {"--gemv", "--shape", "--weights", "--x", "-o", "--numerics", "--target", "--threads", "--json"}));
  if (!line.numerics.empty())
    line.kernel.numerics = line.numerics;
  if (line.kernel.weights.empty() && line.kernel.x.empty() && line.output.empty()) {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<unsigned> threads, cortiq::bench::parse_threads(line.threads));
    return cortiq::bench::bench_kernel_speed(
        {line.kernel.codec, line.kernel.shape, line.kernel.numerics, line.target, threads, line.model.json});
  }
  if (line.kernel.weights.empty() || line.kernel.x.empty() || line.output.empty())
    return cortiq::invalid("--gemv with one of --weights, --x and -o needs all three; see --help");
  CORTIQ_RETURN_IF_ERROR(refuse(app, "--gemv with given weights", {"--json"}));
  line.kernel.target = line.target;
  line.kernel.out = line.output;
  line.kernel.threads = 1;
  if (!line.threads.empty() && line.threads != "0") {
    CORTIQ_ASSIGN_OR_RETURN(line.kernel.threads, one_count(line.threads, "--gemv with given weights"));
  }
  return cortiq::bench::bench_kernel(line.kernel);
}

Status run_static(const CLI::App& app, const CommandLine& line) {
  CORTIQ_RETURN_IF_ERROR(
      refuse_others(app, "--static", {"--static", "--shape", "--numerics", "--target", "--cpu", "--json"}));
  return cortiq::bench::bench_static(
      {line.counted, line.kernel.shape, line.numerics, line.target, line.processors, line.model.json});
}

Status run_machine(const CLI::App& app, const CommandLine& line) {
  const char* mode = line.machine ? "--machine" : "--bandwidth";
  CORTIQ_RETURN_IF_ERROR(refuse_others(app, mode, {mode, "--threads", "--json"}));
  if (line.machine) {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<unsigned> threads, cortiq::bench::parse_threads(line.threads));
    cortiq::bench::report_machine(threads, line.model.json);
    return {};
  }
  CORTIQ_RETURN_IF_ERROR(refuse(app, mode, {"--json"}));
  CORTIQ_ASSIGN_OR_RETURN(const unsigned threads, one_count(line.threads, mode));
  std::printf("%.2f GB/s with %u threads\n", cortiq::runtime::measure_read_bandwidth(threads), threads);
  return {};
}

Status run(CLI::App& app, CommandLine& line) {
  if (!line.key.empty()) {
    for (const char* mode :
         {"--perplexity", "--gemv", "--barriers", "--machine", "--bandwidth", "--synthetic", "--static"})
      CORTIQ_RETURN_IF_ERROR(refuse(app, "--require-key", {mode}));
    CORTIQ_ASSIGN_OR_RETURN(line.model.require_key, cortiq::formats::read_public_key(line.key, "--require-key"));
  }
  if (line.model.device.empty())
    CORTIQ_RETURN_IF_ERROR(
        refuse(app, "a model that the CPU runs", {"--device-memory", "--bank-slots", "--bank-segments"}));
  else // both are about the CPU's threads and memory
    CORTIQ_RETURN_IF_ERROR(refuse(app, "--device", {"--trace", "--roofline"}));
  const bool synthetic = app.count("--synthetic") != 0;
  if (!synthetic)
    CORTIQ_RETURN_IF_ERROR(refuse(app, "anything but --synthetic", {"--gpu-experts", "--prompt-numerics"}));
  if (app.count("--perplexity") != 0)
    return run_quality(app, line);
  CORTIQ_RETURN_IF_ERROR(refuse(app, "anything but --perplexity", {"--context", "--kl"}));
  if (app.count("--static") != 0)
    return run_static(app, line);
  CORTIQ_RETURN_IF_ERROR(refuse(app, "anything but --static", {"--cpu"}));
  if (!line.kernel.codec.empty())
    return run_kernel(app, line);
  if (line.barriers) {
    CORTIQ_RETURN_IF_ERROR(refuse_others(app, "--barriers", {"--barriers", "--threads"}));
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<unsigned> threads, cortiq::bench::parse_threads(line.threads));
    cortiq::bench::report_barriers(threads);
    return {};
  }
  if (line.bandwidth || line.machine)
    return run_machine(app, line);
  if (line.model.files.empty() && !synthetic)
    return cortiq::invalid(
        "it needs a FILE, --synthetic, --machine, --barriers, --gemv, --static or --bandwidth; see --help");
  CORTIQ_RETURN_IF_ERROR(refuse(app, "measuring a model's speed", {"--shape", "--weights", "--x"}));
  if (line.model.prefill == 0 && line.model.decode == 0)
    return cortiq::invalid("--prefill 0 and --decode 0 leave nothing to measure; see --help");
  if (line.model.no_machine)
    if (line.model.device.empty()) // a GPU's profile is not held against the machine
      CORTIQ_RETURN_IF_ERROR(refuse(app, "--no-machine", {"--profile", "--roofline", "--verbose"}));
  CORTIQ_ASSIGN_OR_RETURN(line.model.threads, cortiq::bench::parse_threads(line.threads));
  line.model.memory = cortiq::runtime::cli::parse_memory_size(line.memory).value_or(0);
  line.model.gpu_room = line.gpu_room.room();
  if (app.count("--fill") != 0)
    line.model.fill_seed = line.seed;
  if (!synthetic) {
    CORTIQ_RETURN_IF_ERROR(refuse(app, "measuring an artifact's speed", {"--numerics", "-o"}));
    line.model.target = line.target;
    if (!line.sequences.empty()) {
      CORTIQ_RETURN_IF_ERROR(
          refuse(app, "--sequences",
                 {"--device", "--seconds", "--profile", "--trace", "--roofline", "--verbose", "--no-machine"}));
      CORTIQ_ASSIGN_OR_RETURN(line.model.sequences, cortiq::bench::parse_counts("--sequences", line.sequences));
      return cortiq::bench::bench_batches(line.model);
    }
    return cortiq::bench::bench_models(line.model);
  }
  CORTIQ_RETURN_IF_ERROR(refuse(app, "--synthetic", {"FILE", "--sequences"}));
  if (!line.output.empty())
    CORTIQ_RETURN_IF_ERROR(
        refuse_others(app, "--synthetic with -o",
                      {"--synthetic", "-o", "--fill", "--numerics", "--target", "--gpu-experts", "--prompt-numerics"}));
  return cortiq::bench::bench_synthetic(
      {line.synthetic, line.output, line.numerics, line.target, line.gpu_experts, line.prompt_numerics, line.model});
}

} // namespace

int main(int argc, char** argv) {
  cortiq::formats::prepare_to_write();
  return cortiq::runtime::cli::run_tool(
      kProgram, "this; a smaller model or fewer tokens take less", [&]() -> cortiq::StatusOr<int> {
        CLI::App app("Measures compiled models, how well they predict a text, and single kernels.", kProgram);
        app.set_version_flag("--version", std::string(kProgram) + " " CORTIQ_VERSION " (artifact schema " +
                                              std::to_string(cortiq::formats::kArtifactSchemaVersion) + ")");
        CommandLine line;
        declare(app, line);
        if (const std::optional<int> end = cortiq::runtime::cli::parse_command_line(app, kProgram, argc, argv))
          return *end;
        CORTIQ_RETURN_IF_ERROR(run(app, line));
        return 0;
      });
}
