#include <algorithm>
#include <string>

#include "api/calls.h"
#include "api/handles.h"
#include "formats/overlay/selection.h"
#include "formats/quote.h"
#include "runtime/cli/gpu_choice.h"
#include "runtime/generate/generate.h"
#include "runtime/generate/model_sampler.h"
#include "runtime/session/saved_session.h"

namespace {

using cortiq::Status;
using cortiq::StatusOr;
using namespace cortiq::api;
namespace runtime = cortiq::runtime;

/// One use of a session. There is one at a time: another thread, or a callback, would change what a step reads. A
/// cancellation counts from here, and one of before is forgotten.
class Work {
public:
  explicit Work(cortiq_session& session) : session_(session), mine_(!session.busy.exchange(true)) {
    if (mine_)
      session_.cancelled = false;
  }
  ~Work() {
    if (mine_)
      session_.busy = false;
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  Status begun() const {
    return mine_ ? Status()
                 : cortiq::invalid("the session is at work already, for another thread or the caller of this callback");
  }

private:
  cortiq_session& session_;
  const bool mine_;
};

/// Takes a session back to the tokens it had, unless what ran was kept.
class Undo {
public:
  explicit Undo(cortiq_session& session) : session_(session), position_(session.session->position()) {}
  ~Undo() {
    if (armed_) {
      session_.session->rewind(position_);
      session_.held.resize(position_);
    }
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  void keep() { armed_ = false; }

private:
  cortiq_session& session_;
  const uint64_t position_;
  bool armed_ = true;
};

Status needs(const char* function) {
  return cortiq::invalid(std::string(function) + " needs a session and its arguments");
}

/// Ids that a step will index tables with.
Status check_ids(const runtime::Session& session, const uint32_t* ids, size_t count) {
  const auto* bad = std::find_if(ids, ids + count, [&](uint32_t id) { return id >= session.vocab(); });
  if (bad == ids + count)
    return {};
  return cortiq::invalid("id " + std::to_string(*bad) + " is beyond the model's vocabulary of " +
                         std::to_string(session.vocab()));
}

void forget_after(cortiq_session& session, uint64_t position) {
  session.session->rewind(position);
  session.held.resize(position);
}

runtime::sampling::SamplingOptions sampling_of(const cortiq_generate_options& options) {
  runtime::sampling::SamplingOptions out;
  out.temperature = options.temperature;
  out.top_k = options.top_k;
  out.top_p = options.top_p;
  out.min_p = options.min_p;
  if (options.repetition_penalty != 0)
    out.repetition_penalty = options.repetition_penalty;
  else if (options.temperature < 1e-6f)
    out.repetition_penalty = 1;
  out.presence_penalty = options.presence_penalty;
  out.penalty_window = options.penalty_window;
  out.seed = options.seed;
  return out;
}

cortiq_result result_of(const runtime::Generated& from, bool by_callback) {
  cortiq_result out = CORTIQ_RESULT;
  out.finish = by_callback                                   ? CORTIQ_FINISH_CALLBACK
               : from.finish == runtime::FinishReason::kStop ? CORTIQ_FINISH_STOP
                                                             : CORTIQ_FINISH_LENGTH;
  out.prompt_tokens = from.prompt_tokens;
  out.tokens = from.tokens.size();
  out.prefill_seconds = from.prefill_seconds;
  out.first_token_seconds = from.first_token_seconds;
  out.decode_seconds = from.decode_seconds;
  out.guessed = from.drafts.guessed;
  out.accepted = from.drafts.accepted;
  return out;
}

} // namespace

cortiq_status cortiq_session_create(cortiq_model* model, const cortiq_session_options* options,
                                    cortiq_session** session) {
  return guarded([&]() -> Status {
    if (!model || !session)
      return cortiq::invalid("cortiq_session_create() needs a model and a place for the session");
    *session = nullptr;
    const cortiq_session_options how = options_or<cortiq_session_options>(options, CORTIQ_SESSION_OPTIONS);
    runtime::SessionOptions open;
    open.threads = how.threads;
    open.max_context = how.max_context;
    if (how.kv) {
      open.kv = runtime::parse_kv_type(how.kv);
      if (!open.kv)
        return cortiq::invalid("there is no cache type " + cortiq::formats::quote(how.kv) + "; it is f32, f16 or q8");
    }
    open.gpu = model->gpu;
    open.cpu_fallback = model->cpu_fallback;
    auto out = std::make_unique<cortiq_session>();
    out->model = model->model;
    out->text = model->text;
    const auto nobody = [](const std::string&) {}; // was asked: the session goes on on the CPU, as it would later
    CORTIQ_ASSIGN_OR_RETURN(out->session, runtime::cli::make_or_fall_back(open.gpu, open.cpu_fallback, nobody, [&] {
                              return runtime::Session::create(model->model, open);
                            }));
    *session = out.release();
    return {};
  });
}

void cortiq_session_free(cortiq_session* session) {
  delete session;
}

uint64_t cortiq_session_position(const cortiq_session* session) {
  return session ? session->session->position() : 0;
}

cortiq_status cortiq_session_rewind(cortiq_session* session, uint64_t position) {
  return guarded([&]() -> Status {
    if (!session)
      return needs("cortiq_session_rewind()");
    const Work work(*session);
    CORTIQ_RETURN_IF_ERROR(work.begun());
    if (position > session->session->position())
      return cortiq::invalid("the session holds " + std::to_string(session->session->position()) +
                             " tokens and cannot go back to " + std::to_string(position));
    forget_after(*session, position);
    return {};
  });
}

cortiq_status cortiq_session_keep(cortiq_session* session, const uint32_t* ids, size_t id_count, size_t* kept) {
  return guarded([&]() -> Status {
    if (!session || (!ids && id_count != 0))
      return needs("cortiq_session_keep()");
    const Work work(*session);
    CORTIQ_RETURN_IF_ERROR(work.begun());
    const auto difference = std::mismatch(session->held.begin(), session->held.end(), ids, ids + id_count);
    const auto same = static_cast<size_t>(difference.first - session->held.begin());
    const size_t keep = std::min(same, id_count - std::min<size_t>(1, id_count));
    forget_after(*session, keep);
    if (kept)
      *kept = keep;
    return {};
  });
}

cortiq_status cortiq_session_ids(const cortiq_session* session, uint32_t* ids, size_t capacity, size_t* count) {
  return guarded([&]() -> Status {
    if (!session || (!ids && capacity != 0))
      return needs("cortiq_session_ids()");
    if (session->busy)
      return cortiq::invalid("the session is at work; ask for its ids afterwards");
    fill(session->held, ids, capacity, count);
    return {};
  });
}

cortiq_status cortiq_session_save(cortiq_session* session, const char* path) {
  return guarded([&]() -> Status {
    if (!session || !path)
      return needs("cortiq_session_save()");
    const Work work(*session);
    CORTIQ_RETURN_IF_ERROR(work.begun());
    return runtime::save_session(path, *session->session, {session->held});
  });
}

cortiq_status cortiq_session_load(cortiq_session* session, const char* path) {
  return guarded([&]() -> Status {
    if (!session || !path)
      return needs("cortiq_session_load()");
    const Work work(*session);
    CORTIQ_RETURN_IF_ERROR(work.begun());
    CORTIQ_ASSIGN_OR_RETURN(const runtime::SavedSession saved, runtime::SavedSession::open(path));
    const Status status = saved.restore(*session->session);
    // Whatever came of it: the session holds what was saved, what it held before, or nothing.
    const uint64_t position = session->session->position();
    if (status.ok())
      session->held = saved.sequence().tokens;
    session->held.resize(position);
    return status;
  });
}

cortiq_status cortiq_session_run(cortiq_session* session, const uint32_t* ids, size_t id_count, int32_t all,
                                 const float** logits, size_t* rows) {
  return guarded([&]() -> Status {
    if (!session || !ids)
      return needs("cortiq_session_run()");
    const Work work(*session);
    CORTIQ_RETURN_IF_ERROR(work.begun());
    Undo undo(*session);
    CORTIQ_ASSIGN_OR_RETURN(const std::span<const float> out, session->session->forward({ids, id_count}, all != 0));
    session->held.insert(session->held.end(), ids, ids + id_count);
    undo.keep();
    if (logits)
      *logits = out.data();
    if (rows)
      *rows = out.size() / session->session->vocab();
    return {};
  });
}

cortiq_status cortiq_session_append(cortiq_session* session, uint32_t id, const float** logits) {
  return guarded([&]() -> Status {
    if (!session)
      return needs("cortiq_session_append()");
    const Work work(*session);
    CORTIQ_RETURN_IF_ERROR(work.begun());
    Undo undo(*session);
    CORTIQ_ASSIGN_OR_RETURN(const std::span<const float> out, session->session->append(id));
    session->held.push_back(id);
    undo.keep();
    if (logits)
      *logits = out.data();
    return {};
  });
}

cortiq_status cortiq_session_embed(cortiq_session* session, const uint32_t* ids, size_t id_count, int32_t pooling,
                                   float* vector, size_t capacity, size_t* count) {
  return guarded([&]() -> Status {
    if (!session || !count || (id_count != 0 && !ids) || (capacity != 0 && !vector))
      return needs("cortiq_session_embed()");
    if (pooling != CORTIQ_POOL_MEAN && pooling != CORTIQ_POOL_LAST)
      return cortiq::invalid("there is no pooling " + std::to_string(pooling));
    const Work work(*session);
    CORTIQ_RETURN_IF_ERROR(work.begun());
    CORTIQ_RETURN_IF_ERROR(check_ids(*session->session, ids, id_count));
    forget_after(*session, 0);
    CORTIQ_ASSIGN_OR_RETURN(std::vector<float> out,
                            session->session->embed({ids, id_count}, pooling == CORTIQ_POOL_MEAN
                                                                         ? runtime::Pooling::kMean
                                                                         : runtime::Pooling::kLast));
    if (!runtime::stretch_to_one(out))
      return cortiq::unsupported("the model's last hidden state is no number: the arithmetic overflowed");
    *count = out.size();
    std::copy_n(out.begin(), std::min(capacity, out.size()), vector);
    return {};
  });
}

cortiq_status cortiq_session_select(cortiq_session* session, const char* skill, const char* mask) {
  return guarded([&]() -> Status {
    if (!session)
      return needs("cortiq_session_select()");
    cortiq::formats::OverlayRequest request;
    if (skill && std::string_view(skill).find(':') != std::string_view::npos) {
      CORTIQ_ASSIGN_OR_RETURN(request.blend, cortiq::formats::parse_blend(skill));
    } else if (skill) {
      request.skill = skill;
    }
    if (mask)
      request.task = mask;
    CORTIQ_ASSIGN_OR_RETURN(const cortiq::formats::OverlaySelection selection,
                            cortiq::formats::select_overlay(session->model->overlay(), request));
    return session->session->set_overlay(selection);
  });
}

void cortiq_session_cancel(cortiq_session* session) {
  if (session && session->busy)
    session->cancelled = true;
}

cortiq_status cortiq_session_generate(cortiq_session* session, const uint32_t* ids, size_t id_count,
                                      const cortiq_generate_options* options, cortiq_token_callback callback,
                                      void* user, cortiq_result* result) {
  return guarded([&]() -> cortiq_status {
    if (!session || (!ids && id_count != 0))
      return finish(needs("cortiq_session_generate()"));
    const cortiq_generate_options how = options_or<cortiq_generate_options>(options, CORTIQ_GENERATE_OPTIONS);
    if (!how.stop_ids && how.stop_id_count != 0)
      return finish(cortiq::invalid("stop_ids is null, and stop_id_count is not 0"));
    const runtime::sampling::SamplingOptions sampling = sampling_of(how);
    if (const Status valid = sampling.validate(); !valid.ok())
      return finish(valid);
    if (const Status valid = check_ids(*session->session, ids, id_count); !valid.ok())
      return finish(valid);

    const Work work(*session);
    if (const Status begun = work.begun(); !begun.ok())
      return finish(begun);
    Undo undo(*session);
    bool by_callback = false;
    std::optional<runtime::text::StreamDecoder> decoder;
    runtime::GenerateOptions generate;
    generate.max_tokens = how.max_tokens;
    generate.stop_ids.assign(how.stop_ids, how.stop_ids + how.stop_id_count);
    generate.cancelled = [&] { return by_callback || session->cancelled; };
    std::span<const uint32_t> suppressed;
    if (session->text) {
      decoder.emplace(session->text->tokenizer);
      const runtime::text::TextConfig& config = session->text->config;
      suppressed = config.suppress_ids;
      if (how.ignore_end == 0)
        generate.stop_ids.insert(generate.stop_ids.end(), config.eos_ids.begin(), config.eos_ids.end());
    }
    const auto hand_out = [&](uint32_t id, const std::string& piece) {
      if (callback && callback(user, id, piece.data(), piece.size()) != 0)
        by_callback = true;
    };
    const auto sink = [&](uint32_t id, std::span<const float>) -> Status {
      std::string piece;
      if (decoder) {
        CORTIQ_ASSIGN_OR_RETURN(piece, decoder->push(id));
      }
      hand_out(id, piece);
      return {};
    };

    runtime::sampling::Sampler sampler =
        runtime::model_sampler(sampling, *session->session, session->model->info().token_count, suppressed);
    sampler.observe(session->held);
    const StatusOr<runtime::Generated> generated =
        runtime::generate(*session->session, sampler, {ids, id_count}, generate, sink);
    if (!generated.ok())
      return finish(generated.status());
    session->held.insert(session->held.end(), ids, ids + id_count);
    session->held.insert(session->held.end(), generated->tokens.begin(), generated->tokens.end());
    session->held.resize(session->session->position());
    undo.keep();
    if (decoder && !by_callback) {
      const StatusOr<std::string> rest = decoder->flush();
      if (!rest.ok())
        return finish(rest.status());
      if (!rest->empty())
        hand_out(CORTIQ_NO_ID, *rest);
    }
    if (result)
      fill(result, result_of(*generated, by_callback));
    if (generated->finish == runtime::FinishReason::kCancelled && !by_callback)
      return fail(CORTIQ_CANCELLED, "the generation was cancelled");
    return CORTIQ_OK;
  });
}
