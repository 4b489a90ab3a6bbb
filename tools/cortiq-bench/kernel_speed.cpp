#include "tools/cortiq-bench/kernel_speed.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/session/session.h"
#include "tools/cortiq-bench/compiled_artifact.h"
#include "tools/cortiq-bench/profile_report.h"
#include "tools/cortiq-bench/random_weights.h"
#include "tools/cortiq-bench/temporary_folder.h"

namespace cortiq::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSeconds = 0.25; // of a phase at least

StatusOr<PhaseProfile> run_phase(runtime::Session& session, uint64_t columns, uint64_t tokens) {
  std::vector<float> x(columns * tokens);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<float>(i % 4099));
  CORTIQ_RETURN_IF_ERROR(session.run_vectors(x, tokens).status()); // touches what the first run has to
  session.reset_profile(0);
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  do {
    CORTIQ_RETURN_IF_ERROR(session.run_vectors(x, tokens).status());
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } while (seconds < kSeconds);
  PhaseProfile out{std::to_string(tokens) + (tokens == 1 ? " token" : " tokens"), session.profile(), 0};
  out.outside = std::max(0.0, seconds - out.profile.step);
  return out;
}

} // namespace

Status bench_kernel_speed(const KernelSpeedOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  const std::string weights = folder.path() + "/weights";
  CORTIQ_RETURN_IF_ERROR(write_random_weights("--gemv", options.codec, options.shape, weights));
  CORTIQ_ASSIGN_OR_RETURN(const auto shape, parse_shape(options.shape));
  std::vector<std::string> arguments = {
      "--gemv", options.codec, "--shape", options.shape, "--weights", weights, "--numerics=" + options.numerics};
  if (!options.target.empty())
    arguments.push_back("--target=" + options.target);
  CORTIQ_ASSIGN_OR_RETURN(const CompiledArtifact artifact, CompiledArtifact::compile(std::move(arguments)));
  CORTIQ_ASSIGN_OR_RETURN(const auto model, runtime::Model::load(artifact.path(), {}));
  Json rows = Json::array();
  for (const unsigned threads : options.threads) {
    runtime::SessionOptions how;
    how.threads = threads;
    how.profile = true;
    CORTIQ_ASSIGN_OR_RETURN(const auto session, runtime::Session::create(model, how));
    const Ceilings ceilings = measure_ceilings(session->threads(), Extent::kMemoryAndUnits);
    Json row = {{"threads", session->threads()}};
    for (const uint64_t tokens : {uint64_t{1}, model->info().max_batch}) {
      CORTIQ_ASSIGN_OR_RETURN(const PhaseProfile phase, run_phase(*session, shape.second, tokens));
      if (!options.json)
        print_profile(phase, ceilings);
      row["tokens"][std::to_string(tokens)] = profile_json(phase, ceilings);
    }
    row["machine"] = ceilings_json(ceilings);
    rows.push_back(std::move(row));
  }
  if (options.json) {
    const Json out = {
        {"codec", options.codec}, {"shape", options.shape}, {"target", model->info().target}, {"runs", rows}};
    std::printf("%s\n", out.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return {};
}

} // namespace cortiq::bench
