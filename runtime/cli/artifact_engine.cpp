#include "runtime/cli/artifact_engine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "runtime/cli/gpu_choice.h"
#include "runtime/cpu/bandwidth.h"
#include "runtime/cpu/limits.h"
#include "runtime/session/saved_session.h"
#include "runtime/session/session.h"
#include "runtime/vulkan/gpu.h"

namespace cortiq::runtime::cli {
namespace {

void note(const std::string& sentence) {
  std::fprintf(stderr, "cortiq-run: note: %s\n", sentence.c_str());
}

std::string describe(const Model& model, const Session& session, const GpuModel* gpu, bool asked) {
  const ModelInfo& info = model.info();
  if (gpu)
    return (info.name.empty() ? info.architecture : info.name) + ": on " + gpu->device().name + " (" +
           gpu->device().driver + "), " + std::to_string(gpu->device_bytes() >> 20) +
           " MiB of weights there, context " + std::to_string(session.max_context());
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
  load.require_key = options.artifact_key;
  load.memory = options.memory;
  load.target = options.artifact_target;
  load.placement = runtime::placement_of(options.pages, options.numa);
  CORTIQ_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, Model::load(path, load));
  SessionOptions how;
  how.kv = parse_kv_type(options.kv);
  CORTIQ_ASSIGN_OR_RETURN(
      how.gpu,
      choose_gpu(*model, {options.device, options.fallback == "cpu", options.verbose, how.kv, options.gpu_room}, note));
  if (how.gpu && !(options.save_session + options.load_session).empty())
    return unsupported("a session on a GPU can be neither saved nor loaded; give --device none");
  how.cpu_fallback = options.fallback == "cpu";
  how.threads = options.threads;
  how.placement = load.placement;
  how.max_context = options.max_context;
  how.profile = options.verbose || options.stats;
  CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, make_or_fall_back(how.gpu, how.cpu_fallback, note, [&] {
                            return Session::create(model, how);
                          }));
  if (options.speculation == Speculation::kOn && !session->can_draft())
    note(how.gpu ? "--speculate has no effect: no tokens are guessed on a GPU"
                 : "--speculate has no effect: the model has no head that guesses tokens");
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
  out.description = describe(*model, *session, how.gpu.get(), options.threads != 0);
  out.summary = [session = session.get()] { return summarize(session->profile()); };
  out.report = [session = session.get()] {
    return describe(session->profile(), measure_read_bandwidth(session->threads()));
  };
  out.save = [session = session.get()](const std::string& to, const SavedSequence& sequence) {
    return save_session(to, *session, sequence);
  };
  out.restore = [session = session.get()](const std::string& from) -> StatusOr<SavedSequence> {
    CORTIQ_ASSIGN_OR_RETURN(const SavedSession saved, SavedSession::open(from));
    CORTIQ_RETURN_IF_ERROR(saved.restore(*session));
    return saved.sequence();
  };
  out.engine = std::move(session);
  out.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

} // namespace cortiq::runtime::cli
