#include "tools/cortiq-serve/engine/side_session.h"

#include <cmath>

#include "runtime/generate/generate.h"
#include "tools/cortiq-serve/engine/log_probabilities.h"

namespace cortiq::serve {

bool SideSession::enter() {
  const std::lock_guard lock(count_mutex_);
  if (inside_ > most_waiting_)
    return false;
  ++inside_;
  return true;
}

void SideSession::leave() {
  const std::lock_guard lock(count_mutex_);
  --inside_;
}

StatusOr<runtime::Session*> SideSession::take(std::unique_lock<std::timed_mutex>& lock,
                                              const formats::OverlaySelection& overlay, Clock::time_point deadline) {
  lock = std::unique_lock(session_mutex_, deadline);
  if (!lock)
    return io_error("the time for this answer is up");
  if (!session_) {
    CORTIQ_ASSIGN_OR_RETURN(session_, runtime::Session::create(model_, options_));
  }
  CORTIQ_RETURN_IF_ERROR(session_->set_overlay(overlay));
  return session_.get();
}

StatusOr<std::vector<float>> SideSession::embed(std::span<const uint32_t> tokens, runtime::Pooling pooling,
                                                const formats::OverlaySelection& overlay, Clock::time_point deadline) {
  std::unique_lock<std::timed_mutex> lock;
  CORTIQ_ASSIGN_OR_RETURN(runtime::Session * session, take(lock, overlay, deadline));
  CORTIQ_ASSIGN_OR_RETURN(std::vector<float> out, session->embed(tokens, pooling));
  if (!runtime::stretch_to_one(out))
    return unsupported("the model's last hidden state is no number: its weights or the arithmetic overflowed");
  return out;
}

StatusOr<std::vector<TokenRecord>> SideSession::score(std::span<const uint32_t> tokens, uint32_t count,
                                                      const formats::OverlaySelection& overlay,
                                                      Clock::time_point deadline) {
  std::unique_lock<std::timed_mutex> lock;
  CORTIQ_ASSIGN_OR_RETURN(runtime::Session * session, take(lock, overlay, deadline));
  std::vector<TokenRecord> out;
  out.push_back({.id = tokens.front(), .logprob = NAN, .likeliest = {}, .text_offset = 0});
  if (tokens.size() == 1)
    return out;
  session->reset();
  const uint64_t vocab = session->vocab();
  const Status run =
      runtime::collect_logits(*session, tokens.first(tokens.size() - 1), [&](std::span<const float> rows) {
        for (; !rows.empty(); rows = rows.subspan(vocab))
          out.push_back(token_record(rows.first(vocab), tokens[out.size()], count));
        return Clock::now() < deadline ? Status() : io_error("the time for this answer is up");
      });
  session->reset();
  CORTIQ_RETURN_IF_ERROR(run);
  return out;
}

} // namespace cortiq::serve
