#include "tools/cortiq-serve/engine/embedder.h"

namespace cortiq::serve {

bool Embedder::enter() {
  const std::lock_guard lock(count_mutex_);
  if (inside_ > most_waiting_)
    return false;
  ++inside_;
  return true;
}

void Embedder::leave() {
  const std::lock_guard lock(count_mutex_);
  --inside_;
}

StatusOr<std::vector<float>> Embedder::embed(std::span<const uint32_t> tokens, runtime::Pooling pooling,
                                             const formats::OverlaySelection& overlay, Clock::time_point deadline) {
  const std::unique_lock lock(session_mutex_, deadline);
  if (!lock)
    return io_error("the time for this answer is up");
  if (!session_) {
    CORTIQ_ASSIGN_OR_RETURN(session_, runtime::Session::create(model_, options_));
  }
  CORTIQ_RETURN_IF_ERROR(session_->set_overlay(overlay));
  CORTIQ_ASSIGN_OR_RETURN(std::vector<float> out, session_->embed(tokens, pooling));
  if (!runtime::stretch_to_one(out))
    return unsupported("the model's last hidden state is no number: its weights or the arithmetic overflowed");
  return out;
}

} // namespace cortiq::serve
