#include "tools/cortiq-bench/model_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <vector>

#include "runtime/cpu/bandwidth.h"
#include "runtime/session/session.h"

namespace cortiq::bench {
namespace {

using Json = nlohmann::ordered_json;

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
  double wall = 0, cpu = 0;
};

/// The fastest of `repeat` runs, by wall clock and by CPU time on their own: other programs disturb the two apart.
StatusOr<Timing> fastest(unsigned repeat, const std::function<Status()>& prepare, const std::function<Status()>& work) {
  Timing best{1e300, 1e300};
  for (unsigned i = 0; i < std::max(1u, repeat); ++i) {
    CORTIQ_RETURN_IF_ERROR(prepare());
    const auto start = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds();
    CORTIQ_RETURN_IF_ERROR(work());
    best.cpu = std::min(best.cpu, cpu_seconds() - cpu);
    best.wall = std::min(best.wall, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

Json row(uint64_t tokens, const Timing& timing) {
  const auto count = static_cast<double>(tokens);
  return {{"tokens", tokens},
          {"seconds", timing.wall},
          {"cpu_seconds", timing.cpu},
          {"tokens_per_second", timing.wall > 0 ? count / timing.wall : 0},
          {"tokens_per_cpu_second", timing.cpu > 0 ? count / timing.cpu : 0}};
}

void print_row(const char* name, const Json& r) {
  std::printf("%-8s %5llu tokens  %9.2f ms  %9.2f ms CPU  %9.1f tokens/s  %9.1f tokens/CPU-s\n", name,
              r["tokens"].get<unsigned long long>(), r["seconds"].get<double>() * 1e3,
              r["cpu_seconds"].get<double>() * 1e3, r["tokens_per_second"].get<double>(),
              r["tokens_per_cpu_second"].get<double>());
}

} // namespace

Status bench_model(const ModelBenchOptions& options) {
  runtime::LoadOptions load;
  load.fill_seed = options.fill_seed;
  load.memory = options.memory;
  const auto load_start = std::chrono::steady_clock::now();
  CORTIQ_ASSIGN_OR_RETURN(const auto model, runtime::Model::load(options.file, load));
  runtime::SessionOptions how;
  how.threads = options.threads;
  how.profile = options.verbose;
  if (!options.kv.empty())
    how.kv = options.kv == "f16" ? runtime::KvType::kF16 : runtime::KvType::kF32;
  CORTIQ_ASSIGN_OR_RETURN(const auto session, runtime::Session::create(model, how));
  const double load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - load_start).count();
  if (options.prefill + options.decode > session->max_context())
    return invalid(std::to_string(options.prefill) + " + " + std::to_string(options.decode) +
                   " tokens do not fit the context of " + std::to_string(session->max_context()));

  const uint64_t ids =
      model->info().token_count != 0 ? std::min(model->info().token_count, model->info().vocab) : model->info().vocab;
  std::vector<uint32_t> prompt(options.prefill);
  for (size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<uint32_t>((i * 7919 + 17) % ids);
  auto reset = [&] {
    session->reset();
    return Status();
  };
  auto prefill = [&] { return prompt.empty() ? Status() : session->forward(prompt, false).status(); };
  auto decode = [&] {
    for (uint64_t i = 0; i < options.decode; ++i) {
      const auto id = static_cast<uint32_t>((i * 104729 + 3) % ids);
      CORTIQ_RETURN_IF_ERROR(session->forward({&id, 1}, false).status());
    }
    return Status();
  };
  auto after_prompt = [&] {
    session->rewind(options.prefill);
    return Status();
  };
  CORTIQ_ASSIGN_OR_RETURN(const Timing prefill_time, fastest(options.repeat, reset, prefill));
  CORTIQ_ASSIGN_OR_RETURN(const Timing decode_time, fastest(options.repeat, after_prompt, decode));
  const double peak = peak_megabytes(); // before the measurement below takes its own memory
  const double gbps = runtime::measure_read_bandwidth(session->threads());

  Json out = {{"model", model->info().name},
              {"target", model->info().target},
              {"numerics", model->info().exact ? "exact" : "fast"},
              {"kv", session->kv_type() == runtime::KvType::kF16 ? "f16" : "f32"},
              {"threads", session->threads()},
              {"load_ms", load_seconds * 1e3},
              {"prefill", row(options.prefill, prefill_time)},
              {"decode", row(options.decode, decode_time)},
              {"weight_bytes", model->info().weight_bytes},
              {"read_gbps", gbps},
              {"decode_gbps", decode_time.wall > 0 ? static_cast<double>(model->info().weight_bytes * options.decode) *
                                                         1e-9 / decode_time.wall
                                                   : 0},
              {"peak_mb", peak}};
  if (options.json) {
    std::printf("%s\n", out.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s, %s, %s, cache %s, %u threads, load %.1f ms\n", model->info().name.c_str(),
                model->info().target.c_str(), model->info().exact ? "exact" : "fast",
                session->kv_type() == runtime::KvType::kF16 ? "f16" : "f32", session->threads(), load_seconds * 1e3);
    print_row("prefill", out["prefill"]);
    print_row("decode", out["decode"]);
    std::printf("decode reads %.1f GB/s of weights; this machine reads %.1f GB/s; peak memory %.1f MB\n",
                out["decode_gbps"].get<double>(), gbps, peak);
  }
  std::fputs(session->report().c_str(), stderr);
  for (const std::string& line : runtime::describe(session->profile(), gbps))
    std::fprintf(stderr, "%s\n", line.c_str());
  return {};
}

} // namespace cortiq::bench
