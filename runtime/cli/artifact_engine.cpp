#include "runtime/cli/artifact_engine.h"

#include <chrono>

#include "runtime/cpu/bandwidth.h"
#include "runtime/cpu/limits.h"
#include "runtime/session/session.h"

namespace cortiq::runtime::cli {
namespace {

std::string describe(const Model& model, const Session& session, bool asked) {
  const ModelInfo& info = model.info();
  return (info.name.empty() ? info.architecture : info.name) + ": " + (info.exact ? "exact" : "fast") + ", " +
         info.target + (info.target_reason.empty() ? "" : " (" + info.target_reason + ")") + ", " +
         std::to_string(session.threads()) + " threads" +
         (asked ? "" : " (" + default_threads_reason(read_cpu_limits()) + ")") + ", cache " +
         kv_type_name(session.kv_type()) + ", context " + std::to_string(session.max_context());
}

} // namespace

StatusOr<Loaded> load_artifact_engine(const std::string& path, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  LoadOptions load;
  load.verify_weights = options.verify;
  load.memory = options.memory;
  load.target = options.artifact_target;
  load.placement = {options.pages == "large", options.numa == "auto"};
  CORTIQ_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, Model::load(path, load));
  SessionOptions how;
  how.threads = options.threads;
  how.placement = load.placement;
  how.max_context = options.max_context;
  how.profile = options.verbose || options.stats;
  how.kv = parse_kv_type(options.kv);
  CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::create(model, how));
  Loaded out;
  out.text_absent = model->info().text_absent;
  out.token_count = static_cast<uint32_t>(model->info().token_count);
  // Ids in, ids out needs no tokenizer: its loading is saved.
  const bool ids_only = options.tokens && options.max_tokens == 0;
  if (!model->tokenizer().empty() && !ids_only) {
    StatusOr<text::TextModel> text = text::open_text_section(model->tokenizer());
    if (text.ok())
      out.text = *std::move(text);
    else if (!options.tokens)
      return text.status().with_prefix("the artifact's tokenizer");
  }
  out.target = model->info().target;
  out.target_reason = model->info().target_reason;
  out.targets = model->info().targets;
  out.description = describe(*model, *session, options.threads != 0);
  out.summary = [session = session.get()] { return summarize(session->profile()); };
  out.report = [session = session.get()] {
    return describe(session->profile(), measure_read_bandwidth(session->threads()));
  };
  out.engine = std::move(session);
  out.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

} // namespace cortiq::runtime::cli
