#include "tools/cortiq-bench/quality_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <vector>

#include "formats/file_kind.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "runtime/evaluate/perplexity.h"
#include "runtime/session/session.h"
#include "runtime/text/text_section.h"
#include "tools/cortiq-bench/compiled_artifact.h"
#include "tools/cortiq-bench/gpu.h"

namespace cortiq::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kDefaultContext = 512;

StatusOr<bool> is_artifact(const std::string& file) {
  CORTIQ_ASSIGN_OR_RETURN(const formats::FileKind kind, formats::detect_file_kind(file));
  return kind == formats::FileKind::kArtifact;
}

/// The artifact `file`, of whose targets `target` is run, or the model `file` compiled for it.
StatusOr<std::shared_ptr<const runtime::Model>> load(const std::string& file, const std::string& numerics,
                                                     const std::string& target) {
  CORTIQ_ASSIGN_OR_RETURN(const bool compiled, is_artifact(file));
  if (compiled)
    return runtime::Model::load(file, {.target = target});
  std::vector<std::string> arguments = {file};
  if (!numerics.empty())
    arguments.push_back("--numerics=" + numerics);
  if (!target.empty())
    arguments.push_back("--target=" + target);
  CORTIQ_ASSIGN_OR_RETURN(const CompiledArtifact artifact, CompiledArtifact::compile(std::move(arguments)));
  return runtime::Model::load(artifact.path());
}

/// A loaded model with its tokenizer and state.
struct Contender {
  std::shared_ptr<const runtime::Model> model;
  std::unique_ptr<runtime::Session> session;
};

uint64_t window_of(const QualityBenchOptions& options, const runtime::Model& model) {
  return options.context != 0 ? options.context : std::min(kDefaultContext, model.info().max_context);
}

StatusOr<Contender> prepare(std::shared_ptr<const runtime::Model> model, const QualityBenchOptions& options,
                            const std::string& kv, const std::string& device, uint64_t window) {
  runtime::SessionOptions how;
  how.threads = options.threads;
  how.max_context = window;
  how.profile = options.verbose;
  if (!kv.empty())
    how.kv = runtime::parse_kv_type(kv);
  CORTIQ_ASSIGN_OR_RETURN(how.gpu, load_gpu(*model, device, how.kv, options.gpu_room));
  CORTIQ_ASSIGN_OR_RETURN(auto session, runtime::Session::create(model, how));
  return Contender{std::move(model), std::move(session)};
}

/// What the windows are cut from.
struct TextIds {
  std::vector<uint32_t> ids;
  std::optional<uint32_t> begin; ///< the token that the tokenizer puts before a text
};

StatusOr<TextIds> read_text(const runtime::Model& model, std::string_view text) {
  if (model.tokenizer().empty())
    return unsupported(
        "it holds no tokenizer, and a text cannot be scored without one; convert the model with its tokenizer");
  CORTIQ_ASSIGN_OR_RETURN(const runtime::text::TextModel reader, runtime::text::open_text_section(model.tokenizer()));
  TextIds out;
  const auto encode = [&](bool special) { return reader.tokenizer.encode(text, {special, false}); };
  CORTIQ_ASSIGN_OR_RETURN(out.ids, encode(false));
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint32_t> framed, encode(true));
  // Whatever is put behind a text belongs to no window.
  if (framed.size() > out.ids.size() && framed.front() == reader.config.bos_id) {
    out.begin = framed.front();
    out.ids.insert(out.ids.begin(), framed.front());
  }
  return out;
}

Json describe(const runtime::Model& model, const runtime::Session& session, const runtime::TextScore& score) {
  const runtime::ModelInfo& info = model.info();
  return {{"model", info.name.empty() ? info.architecture : info.name},
          {"numerics", info.exact ? "exact" : "fast"},
          {"target", info.target},
          {"kv", runtime::kv_type_name(session.kv_type())},
          {"perplexity", score.perplexity()},
          {"perplexity_error", score.perplexity_error()},
          {"mean_loss", score.mean_loss}};
}

void print_contender(const char* role, const Json& c) {
  std::printf("%-10s perplexity %.4f +- %.4f  (%s, %s, %s, cache %s)\n", role, c["perplexity"].get<double>(),
              c["perplexity_error"].get<double>(), c["model"].get<std::string>().c_str(),
              c["target"].get<std::string>().c_str(), c["numerics"].get<std::string>().c_str(),
              c["kv"].get<std::string>().c_str());
}

/// Counts windows on a terminal.
void show_progress(uint64_t done, uint64_t windows) {
  std::fprintf(stderr, "\rcortiq-bench: window %llu of %llu%s", static_cast<unsigned long long>(done),
               static_cast<unsigned long long>(windows), done == windows ? "\n" : "");
}

void print_result(const QualityBenchOptions& options, const runtime::Evaluation& result, const Contender& model,
                  const Contender& reference, uint64_t window, double seconds) {
  Json out = describe(*model.model, *model.session, result.model);
  out["threads"] = model.session->threads();
  out["context"] = window;
  out["windows"] = result.windows;
  out["tokens"] = result.tokens;
  out["seconds"] = seconds;
  if (result.divergence) {
    out["reference"] = describe(*reference.model, *reference.session, *result.reference);
    out["perplexity_ratio"] = result.difference->perplexity();
    out["perplexity_ratio_error"] = result.difference->perplexity_error();
    out["kl"] = {{"mean", result.divergence->mean},
                 {"p99", result.divergence->p99},
                 {"max", result.divergence->max},
                 {"top1_agreement", result.divergence->top1_agreement}};
  }
  if (options.json) {
    std::printf("%s\n", out.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%llu tokens scored in %llu windows of %llu, %.1f s with %u threads\n",
              static_cast<unsigned long long>(result.tokens), static_cast<unsigned long long>(result.windows),
              static_cast<unsigned long long>(window), seconds, model.session->threads());
  print_contender("model", out);
  if (!result.divergence)
    return;
  print_contender("reference", out["reference"]);
  std::printf("ratio      %.5f +- %.5f\n", out["perplexity_ratio"].get<double>(),
              out["perplexity_ratio_error"].get<double>());
  std::printf("KL         mean %.6f, 99%% %.6f, max %.6f nats\n", result.divergence->mean, result.divergence->p99,
              result.divergence->max);
  std::printf("same top-1 %.3f%%\n", result.divergence->top1_agreement * 100);
}

StatusOr<std::shared_ptr<const runtime::Model>> load_reference(const QualityBenchOptions& options) {
  if (options.reference == kExactReference)
    return load(options.file, "exact", options.target);
  // --target picks among the targets of FILE; an artifact to compare with runs as it would anyway.
  CORTIQ_ASSIGN_OR_RETURN(const bool compiled, is_artifact(options.reference));
  return load(options.reference, "exact", compiled ? "" : options.target);
}

/// Refuses options that would be ignored.
Status check(const QualityBenchOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(const bool compiled, is_artifact(options.file));
  if (compiled && !options.numerics.empty())
    return invalid("--numerics says how to compile a model, and " + formats::quote(options.file) +
                   " is compiled already; leave it out, or give the model");
  if (compiled && options.reference == kExactReference)
    return invalid("--kl exact compiles the model once more, and " + formats::quote(options.file) +
                   " is an artifact; give the model, or name a reference");
  // A reference that is not there is told before anything is compiled.
  return options.reference.empty() || options.reference == kExactReference ? Status()
                                                                           : is_artifact(options.reference).status();
}

} // namespace

Status bench_quality(const QualityBenchOptions& options) {
  CORTIQ_RETURN_IF_ERROR(check(options));
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile file, formats::MappedFile::open(options.text));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (!formats::is_utf8(text))
    return invalid(formats::quote(options.text) + " is not UTF-8; --perplexity takes a text");

  CORTIQ_ASSIGN_OR_RETURN(const auto loaded, load(options.file, options.numerics, options.target));
  StatusOr<TextIds> ids = read_text(*loaded, text);
  if (!ids.ok())
    return ids.status().with_prefix(formats::quote(options.file));
  const uint64_t window = window_of(options, *loaded);
  CORTIQ_ASSIGN_OR_RETURN(const Contender model, prepare(loaded, options, options.kv, options.device, window));
  if (ids->ids.size() < window)
    return invalid(formats::quote(options.text) + " has " + std::to_string(ids->ids.size()) +
                   " tokens, fewer than one context of " + std::to_string(window) +
                   "; take a longer text or a smaller --context");
  Contender reference;
  if (!options.reference.empty()) {
    CORTIQ_ASSIGN_OR_RETURN(const auto wanted, load_reference(options));
    StatusOr<TextIds> same = read_text(*wanted, text);
    if (!same.ok())
      return same.status().with_prefix("the reference");
    if (wanted->info().vocab == loaded->info().vocab && same->ids != ids->ids)
      return invalid("the reference's tokenizer reads " + formats::quote(options.text) +
                     " as other tokens than the model's: their predictions cannot be compared");
    StatusOr<Contender> prepared = prepare(wanted, options, "", "", window);
    if (!prepared.ok())
      return prepared.status().with_prefix("the reference");
    reference = *std::move(prepared);
  }

  const auto start = std::chrono::steady_clock::now();
  CORTIQ_ASSIGN_OR_RETURN(const runtime::Evaluation result,
                          runtime::evaluate_text(*model.session, reference.session.get(), ids->ids,
                                                 {window, ids->begin},
                                                 isatty(STDERR_FILENO) ? show_progress : runtime::WindowProgress()));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print_result(options, result, model, reference, window, seconds);
  std::fputs(model.session->report().c_str(), stderr);
  for (const std::string& line : runtime::describe(model.session->profile(), 0))
    std::fprintf(stderr, "%s\n", line.c_str());
  return {};
}

} // namespace cortiq::bench
