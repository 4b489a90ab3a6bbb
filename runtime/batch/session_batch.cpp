#include "runtime/batch/session_batch.h"

#include <algorithm>
#include <string>

#include "runtime/loader/load.h"

namespace cortiq::runtime {
namespace {

class SessionBatch final : public BatchEngine {
public:
  explicit SessionBatch(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  Status make(const BatchOptions& options) {
    SessionOptions how;
    how.threads = options.threads;
    how.kv = options.kv;
    how.max_context = options.max_context;
    how.placement = options.placement;
    how.gpu = options.gpu;
    how.cpu_fallback = options.cpu_fallback;
    for (uint64_t i = 0; i < options.sequences; ++i) {
      Held held;
      CORTIQ_ASSIGN_OR_RETURN(held.session, Session::create(model_, how));
      how.workers = held.session->workers();
      held.selection = {{}, model_->overlay().default_mask()};
      held_.push_back(std::move(held));
    }
    return held_.empty() ? invalid("a batch has at least one sequence") : Status();
  }

  uint64_t vocab() const override { return held_[0].session->vocab(); }
  uint64_t max_context() const override { return held_[0].session->max_context(); }
  uint64_t max_batch() const override { return model_->artifact().program.max_batch; }
  uint64_t sequences() const override { return held_.size(); }
  unsigned threads() const override { return held_[0].session->threads(); }

  StatusOr<Sequence> open(const formats::OverlaySelection& selection, std::span<const uint32_t> prompt) override {
    Held* best = nullptr;
    uint64_t most = 0;
    for (Held& held : held_) {
      const uint64_t common = held.selection == selection ? common_with(held, prompt) : 0;
      if (held.open || (best && common <= most))
        continue;
      best = &held;
      most = common;
    }
    if (!best)
      return io_error("all " + std::to_string(held_.size()) + " sequences are in use");
    if (!(best->selection == selection))
      CORTIQ_RETURN_IF_ERROR(best->session->set_overlay(selection));
    best->selection = selection;
    best->open = true;
    hold(*best, prompt.first(std::min<uint64_t>(most, prompt.empty() ? 0 : prompt.size() - 1)));
    return static_cast<Sequence>(best - held_.data());
  }

  StatusOr<Sequence> fork(Sequence) override { return unsupported("these sequences share nothing"); }
  void close(Sequence sequence) override { held_[sequence].open = false; }
  uint64_t position(Sequence sequence) const override { return held_[sequence].tokens.size(); }
  bool compatible(Sequence, Sequence) const override { return true; }
  bool shares_beginnings() const override { return false; }
  uint64_t known(const formats::OverlaySelection&, std::span<const uint32_t>) const override { return 0; }
  uint64_t pages_for(Sequence, uint64_t) const override { return 0; }
  uint64_t pages_available() const override { return UINT32_MAX; }
  BatchCacheState cache() const override { return {}; }
  Profile profile() const override { return held_[0].session->profile(); }

  StatusOr<std::span<const Result>> step(std::span<const Part> parts) override {
    results_.clear();
    for (const Part& part : parts) {
      Held& held = held_[part.sequence];
      Result& result = results_.emplace_back();
      held.session->want_top(part.logits && part.choose ? part.top : std::nullopt);
      StatusOr<std::span<const float>> logits = run(*held.session, part);
      if (const TopLogits* top = logits.ok() ? held.session->top() : nullptr) {
        result.chosen = part.choose(*top);
        if (!result.chosen)
          logits = held.session->whole_row();
      }
      result.status = logits.status();
      if (!logits.ok()) {
        hold(held, {});
        continue;
      }
      held.tokens.insert(held.tokens.end(), part.tokens.begin(), part.tokens.end());
      if (part.logits && !result.chosen)
        result.logits = *logits;
    }
    return std::span<const Result>(results_);
  }

private:
  struct Held {
    std::unique_ptr<Session> session;
    formats::OverlaySelection selection;
    std::vector<uint32_t> tokens; ///< that the session holds
    bool open = false;
  };

  static StatusOr<std::span<const float>> run(Session& session, const Part& part) {
    if (!part.generated)
      return session.forward(part.tokens, false);
    StatusOr<std::span<const float>> logits = session.append(part.tokens.front());
    for (size_t i = 1; i < part.tokens.size() && logits.ok(); ++i)
      logits = session.append(part.tokens[i]);
    return logits;
  }

  static uint64_t common_with(const Held& held, std::span<const uint32_t> prompt) {
    const auto end = std::mismatch(held.tokens.begin(), held.tokens.end(), prompt.begin(), prompt.end()).first;
    return static_cast<uint64_t>(end - held.tokens.begin());
  }

  static void hold(Held& held, std::span<const uint32_t> tokens) {
    held.session->rewind(tokens.size());
    held.tokens.assign(tokens.begin(), tokens.end());
  }

  std::shared_ptr<const Model> model_;
  std::vector<Held> held_;
  std::vector<Result> results_;
};

} // namespace

StatusOr<std::unique_ptr<BatchEngine>> make_session_batch(std::shared_ptr<const Model> model,
                                                          const BatchOptions& options) {
  auto batch = std::make_unique<SessionBatch>(std::move(model));
  CORTIQ_RETURN_IF_ERROR(batch->make(options));
  return std::unique_ptr<BatchEngine>(std::move(batch));
}

} // namespace cortiq::runtime
