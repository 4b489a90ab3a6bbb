#include "tools/cortiq-bench/model_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <vector>

#include "formats/atomic_file.h"
#include "formats/quote.h"
#include "runtime/session/session.h"
#include "runtime/vulkan/gpu.h"
#include "tools/cortiq-bench/gpu.h"
#include "tools/cortiq-bench/machine/machine.h"
#include "tools/cortiq-bench/pipeline_report.h"
#include "tools/cortiq-bench/profile_report.h"
#include "tools/cortiq-bench/roofline.h"

namespace cortiq::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kTracedSteps = 4; // of a phase: enough to see a rhythm, few enough to open in a browser

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

struct Timing {
  double wall = 0, cpu = 0;           ///< of the fastest run by each: other programs disturb the two apart
  double median = 0;                  ///< wall clock
  double total = 0;                   ///< wall clock of all runs
  std::vector<double> runs, warm_ups; ///< wall clock of each, in their order
  double began = 0, ended = 0;        ///< Unix time, warm-up included: what else was logged meanwhile
};

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// So that a device which idled while weights were filled or pipelines made is back at its clock.
constexpr std::chrono::seconds kWarmUp{1};

/// Seconds of each run.
StatusOr<std::vector<double>> warm_up(const std::function<Status()>& prepare, const std::function<Status()>& work) {
  std::vector<double> walls;
  const auto until = std::chrono::steady_clock::now() + kWarmUp;
  do {
    CORTIQ_RETURN_IF_ERROR(prepare());
    const auto start = std::chrono::steady_clock::now();
    CORTIQ_RETURN_IF_ERROR(work());
    walls.push_back(seconds_since(start));
  } while (std::chrono::steady_clock::now() < until);
  return walls;
}

/// `repeat` runs at least, and more until they have taken `seconds`.
StatusOr<Timing> time_runs(unsigned repeat, double seconds, const std::function<Status()>& prepare,
                           const std::function<Status()>& work) {
  Timing best;
  best.wall = best.cpu = 1e300;
  std::vector<double> walls;
  while (walls.size() < std::max(1u, repeat) || best.total < seconds) {
    CORTIQ_RETURN_IF_ERROR(prepare());
    const auto start = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds();
    CORTIQ_RETURN_IF_ERROR(work());
    best.cpu = std::min(best.cpu, cpu_seconds() - cpu);
    const double wall = seconds_since(start);
    best.wall = std::min(best.wall, wall);
    best.total += wall;
    walls.push_back(wall);
  }
  best.runs = walls;
  std::ranges::sort(walls);
  best.median = (walls[walls.size() / 2] + walls[(walls.size() - 1) / 2]) / 2;
  return best;
}

Json speeds(double tokens, const std::vector<double>& walls) {
  Json out = Json::array();
  for (const double wall : walls)
    out.push_back(wall > 0 ? tokens / wall : 0);
  return out;
}

Json row(uint64_t tokens, const Timing& timing) {
  const auto count = static_cast<double>(tokens);
  return {{"tokens", tokens},
          {"seconds", timing.wall},
          {"cpu_seconds", timing.cpu},
          {"tokens_per_second", timing.wall > 0 ? count / timing.wall : 0},
          {"median_tokens_per_second", timing.median > 0 ? count / timing.median : 0},
          {"tokens_per_cpu_second", timing.cpu > 0 ? count / timing.cpu : 0},
          {"runs_tokens_per_second", speeds(count, timing.runs)},
          {"warm_up_tokens_per_second", speeds(count, timing.warm_ups)},
          {"began", timing.began},
          {"ended", timing.ended}};
}

void print_row(const char* name, const Json& r) {
  std::printf("%-8s %5llu tokens  %9.2f ms  %9.2f ms CPU  %9.1f tokens/s  %9.1f tokens/CPU-s\n", name,
              r["tokens"].get<unsigned long long>(), r["seconds"].get<double>() * 1e3,
              r["cpu_seconds"].get<double>() * 1e3, r["tokens_per_second"].get<double>(),
              r["tokens_per_cpu_second"].get<double>());
}

/// One number of threads.
struct Run {
  unsigned threads = 0;
  std::string kv, report;
  Timing prefill, decode;
  runtime::DeviceMemory device_memory; ///< while it ran
  std::vector<runtime::GpuPipeline> pipelines;
  std::vector<PhaseProfile> phases;
  Ceilings ceilings;
};

bool profiled(const ModelBenchOptions& options) {
  return options.profile || options.verbose || !options.trace.empty() || !options.roofline.empty();
}

struct Opened {
  std::shared_ptr<const runtime::GpuModel> gpu; ///< null: the CPU runs it
  std::unique_ptr<runtime::Session> session;
};

StatusOr<Opened> open_session(const ModelBenchOptions& options, const std::shared_ptr<const runtime::Model>& model,
                              unsigned threads) {
  runtime::SessionOptions how;
  how.threads = threads;
  how.profile = profiled(options);
  how.placement = runtime::placement_of(options.pages, options.numa);
  if (!options.kv.empty())
    how.kv = runtime::parse_kv_type(options.kv);
  CORTIQ_ASSIGN_OR_RETURN(how.gpu, load_gpu(*model, options.device, how.kv, options.gpu_room, options.profile));
  CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Session> session, runtime::Session::create(model, how));
  if (options.prefill + options.decode > session->max_context())
    return invalid(std::to_string(options.prefill) + " + " + std::to_string(options.decode) +
                   " tokens do not fit the context of " + std::to_string(session->max_context()) +
                   "; measure fewer, or compile the model with a larger --max-context");
  return Opened{how.gpu, std::move(session)};
}

StatusOr<Run> measure(const ModelBenchOptions& options, const runtime::ModelInfo& info, runtime::Session& session) {
  Run run;
  run.threads = session.threads();
  run.kv = runtime::kv_type_name(session.kv_type());
  const uint64_t ids = info.token_count != 0 ? std::min(info.token_count, info.vocab) : info.vocab;
  std::vector<uint32_t> prompt(options.prefill);
  for (size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<uint32_t>((i * 7919 + 17) % ids);
  auto phase = [&](const char* name, uint64_t tokens, const std::function<Status()>& prepare,
                   const std::function<Status()>& work) -> StatusOr<Timing> {
    const double began = unix_time();
    std::vector<double> warm_ups;
    if (!options.device.empty() && tokens != 0) {
      CORTIQ_ASSIGN_OR_RETURN(warm_ups, warm_up(prepare, work));
    }
    session.reset_profile(options.trace.empty() ? 0 : kTracedSteps);
    const double seconds = tokens != 0 ? static_cast<double>(options.seconds) : 0;
    CORTIQ_ASSIGN_OR_RETURN(Timing timing, time_runs(options.repeat, seconds, prepare, work));
    timing.warm_ups = std::move(warm_ups);
    timing.began = began;
    timing.ended = unix_time();
    if (profiled(options) && tokens != 0) {
      runtime::Profile profile = session.profile();
      const double outside = std::max(0.0, timing.total - profile.step);
      run.phases.push_back({name, std::move(profile), outside});
    }
    return timing;
  };
  auto reset = [&] {
    session.reset();
    return Status();
  };
  auto prefill = [&] { return prompt.empty() ? Status() : session.forward(prompt, false).status(); };
  auto after_prompt = [&] {
    session.rewind(options.prefill);
    return Status();
  };
  auto decode = [&] {
    for (uint64_t i = 0; i < options.decode; ++i) {
      const auto id = static_cast<uint32_t>((i * 104729 + 3) % ids);
      CORTIQ_RETURN_IF_ERROR(options.device.empty() ? session.append(id).status() : session.largest(id).status());
    }
    return Status();
  };
  CORTIQ_ASSIGN_OR_RETURN(run.prefill, phase("prefill", options.prefill, reset, prefill));
  CORTIQ_ASSIGN_OR_RETURN(run.decode, phase("decode", options.decode, after_prompt, decode));
  run.report = session.report();
  run.device_memory = runtime::device_memory();
  return run;
}

/// What decoding one token reads: of experts, those in use.
StatusOr<double> bytes_a_token(const ModelBenchOptions& options, const std::shared_ptr<const runtime::Model>& model) {
  runtime::SessionOptions how;
  how.threads = options.threads.front();
  how.profile = true;
  how.placement = runtime::placement_of(options.pages, options.numa);
  CORTIQ_ASSIGN_OR_RETURN(const auto session, runtime::Session::create(model, how));
  const uint32_t id = 0;
  CORTIQ_RETURN_IF_ERROR(session->append(id).status());
  return session->profile().bytes;
}

Json memory_json(const runtime::DeviceMemory& memory) {
  return {{"allocations", memory.allocations}, {"bytes", memory.bytes}};
}

Json run_json(const ModelBenchOptions& options, const runtime::ModelInfo& info, double token_bytes, const Run& run) {
  const double bytes = token_bytes * static_cast<double>(options.decode);
  Json out = {{"kv", run.kv},
              {"threads", run.threads},
              {"prefill", row(options.prefill, run.prefill)},
              {"decode", row(options.decode, run.decode)},
              {"weight_bytes", info.weight_bytes},
              {"token_bytes", token_bytes},
              {"decode_gbps", run.decode.wall > 0 ? bytes * 1e-9 / run.decode.wall : 0}};
  if (!options.device.empty())
    out["device_memory"] = memory_json(run.device_memory);
  if (!options.no_machine)
    out["read_gbps"] = run.ceilings.memory.best;
  if (!options.profile)
    return out;
  for (const PhaseProfile& phase : run.phases)
    out["profile"][phase.phase] = profile_json(phase, run.ceilings);
  if (!options.device.empty())
    out["pipelines"] = pipelines_json(run.pipelines);
  out["machine"] = ceilings_json(run.ceilings);
  return out;
}

void print_run(const ModelBenchOptions& options, const Run& run, const Json& out) {
  print_row("prefill", out["prefill"]);
  print_row("decode", out["decode"]);
  std::printf("decode reads %.1f MB a token, %.1f GB/s", out["token_bytes"].get<double>() * 1e-6,
              out["decode_gbps"].get<double>());
  if (options.no_machine)
    std::printf("\n");
  else
    std::printf("; this machine reads %.1f GB/s\n", run.ceilings.memory.best);
  if (options.profile)
    for (const PhaseProfile& phase : run.phases)
      print_profile(phase, run.ceilings);
  if (options.profile && !options.device.empty())
    std::fputs(describe_pipelines(run.pipelines).c_str(), stdout);
}

/// The ceilings of each number of threads, measured when they are first asked for: after a model, whose peak memory
/// they would hide.
class CeilingsByThreads {
public:
  explicit CeilingsByThreads(Extent extent) : extent_(extent) {}
  const Ceilings& of(unsigned threads) {
    const auto [place, is_new] = known_.try_emplace(threads);
    if (is_new)
      place->second = measure_ceilings(threads, extent_);
    return place->second;
  }

private:
  Extent extent_;
  std::map<unsigned, Ceilings> known_;
};

void print_model(const ModelBenchOptions& options, const std::vector<Run>& runs, const Json& out) {
  const Json& rows = runs.size() == 1 ? Json::array({out}) : out["runs"];
  for (size_t i = 0; i < runs.size(); ++i) {
    std::printf("%s, %s, %s, cache %s, %u threads, load %.1f ms, peak memory %.1f MB\n",
                out["model"].get_ref<const std::string&>().c_str(), out["target"].get_ref<const std::string&>().c_str(),
                out["numerics"].get_ref<const std::string&>().c_str(), runs[i].kv.c_str(), runs[i].threads,
                out["load_ms"].get<double>(), out["peak_mb"].get<double>());
    print_run(options, runs[i], rows[i]);
  }
  std::fflush(stdout);
}

Status write_pictures(const ModelBenchOptions& options, const runtime::ModelInfo& info, const Run& run) {
  if (!options.trace.empty())
    CORTIQ_RETURN_IF_ERROR(write_trace(options.trace, run.phases));
  if (options.roofline.empty())
    return {};
  const std::string title = info.name + ", " + info.target + ", " + std::to_string(run.threads) + " threads";
  return write_roofline(options.roofline, title, run.phases, run.ceilings);
}

/// One artifact; with `pictures` it is the one to draw.
StatusOr<Json> bench_model(const ModelBenchOptions& options, const std::string& file, bool pictures,
                           CeilingsByThreads& ceilings) {
  runtime::LoadOptions load;
  load.fill_seed = options.fill_seed;
  load.require_key = options.require_key;
  load.memory = options.memory;
  load.target = options.target;
  load.placement = runtime::placement_of(options.pages, options.numa);
  const auto load_start = std::chrono::steady_clock::now();
  CORTIQ_ASSIGN_OR_RETURN(const auto model, runtime::Model::load(file, load));
  const runtime::ModelInfo& info = model->info();
  std::vector<Run> runs;
  double load_seconds = 0;
  for (const unsigned threads : options.threads) {
    CORTIQ_ASSIGN_OR_RETURN(const Opened opened, open_session(options, model, threads));
    if (runs.empty())
      load_seconds = seconds_since(load_start);
    CORTIQ_ASSIGN_OR_RETURN(Run run, measure(options, info, *opened.session));
    if (opened.gpu)
      run.pipelines = opened.gpu->pipelines();
    runs.push_back(std::move(run));
  }
  CORTIQ_ASSIGN_OR_RETURN(const double token_bytes, bytes_a_token(options, model));
  Json out = {{"model", info.name},
              {"target", info.target},
              {"target_reason", info.target_reason},
              {"numerics", info.exact ? "exact" : "fast"},
              {"load_ms", load_seconds * 1e3},
              {"peak_mb", peak_megabytes()}};
  Json rows = Json::array();
  for (Run& run : runs) {
    run.ceilings = ceilings.of(run.threads);
    rows.push_back(run_json(options, info, token_bytes, run));
  }
  if (rows.size() == 1)
    out.update(rows[0]);
  else
    out["runs"] = std::move(rows);
  if (!options.json)
    print_model(options, runs, out);
  if (pictures)
    CORTIQ_RETURN_IF_ERROR(write_pictures(options, info, runs.front()));
  std::fputs(runs.front().report.c_str(), stderr);
  if (options.verbose && !info.target_reason.empty())
    std::fprintf(stderr, "target %s: %s\n", info.target.c_str(), info.target_reason.c_str());
  for (const Run& run : runs)
    for (const PhaseProfile& phase : options.verbose ? run.phases : std::vector<PhaseProfile>())
      for (const std::string& line : runtime::describe(phase.profile, run.ceilings.memory.best))
        std::fprintf(stderr, "%s: %s\n", phase.phase.c_str(), line.c_str());
  return out;
}

} // namespace

Status bench_models(const ModelBenchOptions& options) {
  // What cannot be written is told before anything is measured.
  for (const std::string& picture : {options.trace, options.roofline})
    if (!picture.empty())
      CORTIQ_RETURN_IF_ERROR(formats::AtomicFile::create(picture).status());
  if (!options.trace.empty() && options.trace == options.roofline)
    return invalid("--trace and --roofline name the same file, " + formats::quote(options.trace));
  const bool units = options.profile || !options.roofline.empty();
  CeilingsByThreads ceilings(options.no_machine ? Extent::kNothing : units ? Extent::kMemoryAndUnits : Extent::kMemory);
  Json models = Json::array();
  for (const std::string& file : options.files) {
    CORTIQ_ASSIGN_OR_RETURN(Json model, bench_model(options, file, models.empty(), ceilings));
    if (!options.device.empty()) // the model is unloaded by now
      model["device_memory_left"] = memory_json(runtime::device_memory());
    models.push_back(std::move(model));
  }
  if (options.json) {
    const Json out = models.size() == 1 ? models[0] : Json{{"models", models}};
    std::printf("%s\n", out.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return {};
}

} // namespace cortiq::bench
