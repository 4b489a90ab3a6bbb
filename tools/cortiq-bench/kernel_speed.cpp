#include "tools/cortiq-bench/kernel_speed.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "formats/atomic_file.h"
#include "formats/checked_math.h"
#include "formats/layout/layout.h"
#include "formats/quote.h"
#include "runtime/session/session.h"
#include "tools/cortiq-bench/compiled_artifact.h"
#include "tools/cortiq-bench/profile_report.h"
#include "tools/cortiq-bench/temporary_folder.h"

namespace cortiq::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSeconds = 0.25; // of a phase at least
constexpr uint64_t kMostWeights = uint64_t{1} << 34;

StatusOr<std::pair<uint64_t, uint64_t>> parse_shape(const std::string& shape) {
  uint64_t rows = 0, cols = 0;
  const char* end = shape.data() + shape.size();
  const auto first = std::from_chars(shape.data(), end, rows);
  if (first.ptr == end || *first.ptr != 'x' || std::from_chars(first.ptr + 1, end, cols).ptr != end || rows == 0 ||
      cols == 0)
    return invalid("--shape is ROWSxCOLS, not " + formats::quote(shape));
  if (formats::checked_mul(rows, cols).value_or(UINT64_MAX) > kMostWeights)
    return invalid("--shape " + shape + " is more than the 2^34 weights that are made up for a measurement");
  return std::pair{rows, cols};
}

Status write_weights(const KernelSpeedOptions& options, const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(const auto shape, parse_shape(options.shape));
  const formats::Codec* codec = formats::find_cli_codec(options.codec);
  if (!codec || codec->form == formats::DotForm::kNone)
    return invalid("there is no weight codec " + formats::quote(options.codec) +
                   "; cortiq-inspect --codecs lists them");
  const std::string what = "--gemv " + options.codec + " --shape " + options.shape;
  const StatusOr<uint64_t> bytes =
      formats::packed_bytes(*codec, formats::LayoutId::kVerbatim, shape.first, shape.second);
  if (!bytes.ok())
    return bytes.status().with_prefix(what);
  std::vector<uint8_t> payload(*bytes);
  CORTIQ_RETURN_IF_ERROR(
      formats::fill_random(*codec, formats::LayoutId::kVerbatim, shape.first, shape.second, 1, payload)
          .with_prefix(what));
  return formats::write_file(path, payload);
}

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
  CORTIQ_RETURN_IF_ERROR(write_weights(options, weights));
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
