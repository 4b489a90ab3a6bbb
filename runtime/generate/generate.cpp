#include "runtime/generate/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

namespace cortiq::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Status check_prompt(const Engine& engine, std::span<const uint32_t> prompt) {
  if (prompt.empty())
    return invalid("the prompt has no tokens and the model has no token to begin with; give it a text");
  const uint64_t room = engine.max_context() - engine.position();
  if (prompt.size() <= room)
    return {};
  std::string message =
      "the prompt has " + std::to_string(prompt.size()) + " tokens, the context has room for " + std::to_string(room);
  if (engine.position() != 0)
    message += " of " + std::to_string(engine.max_context());
  return invalid(message + "; give a shorter one, or a larger --max-context");
}

/// `first` is the position of the first row.
Status check_logits(std::span<const float> logits, uint64_t vocab, uint64_t first) {
  for (size_t i = 0; i < logits.size(); ++i)
    if (std::isnan(logits[i]))
      return invalid("the logits at position " + std::to_string(first + i / vocab) + " are not numbers (id " +
                     std::to_string(i % vocab) +
                     " is NaN): the model's weights or the arithmetic overflowed; --kv f32, and compiling with "
                     "--numerics exact, tell which");
  return {};
}

/// Asks an engine for the largest logits as long as it lives.
class TopMode {
public:
  TopMode(Engine& engine, const std::optional<TopAsk>& ask) : engine_(engine) { engine.want_top(ask); }
  ~TopMode() { engine_.want_top(std::nullopt); }
  TopMode(const TopMode&) = delete;
  TopMode& operator=(const TopMode&) = delete;

private:
  Engine& engine_;
};

} // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
  case FinishReason::kStop:
    return "stop";
  case FinishReason::kLength:
    return "length";
  case FinishReason::kCancelled:
    return "cancelled";
  }
  return "";
}

StatusOr<Generated> generate(Engine& engine, sampling::Sampler& sampler, std::span<const uint32_t> prompt,
                             const GenerateOptions& options, const TokenSink& sink) {
  CORTIQ_RETURN_IF_ERROR(check_prompt(engine, prompt));
  Generated out;
  out.prompt_tokens = prompt.size();
  sampler.observe(prompt);
  const Clock::time_point start = Clock::now();
  const TopMode mode(engine,
                     engine.can_top() && sampler.takes_top() && !options.constraint && !options.sink_takes_logits
                         ? std::optional(sampler.ask_top())
                         : std::nullopt);
  Stepper stepper(engine, sampler, options.speculation);
  const auto cancelled = [&] { return options.cancelled && options.cancelled(); };
  CORTIQ_ASSIGN_OR_RETURN(std::span<const float> logits,
                          options.continues ? stepper.again(prompt) : stepper.prompt(prompt, options.cancelled));
  out.prefill_seconds = seconds_since(start);
  if (logits.empty())
    out.finish = FinishReason::kCancelled;
  Clock::time_point decode_start = start;
  std::vector<float> masked;
  auto choose = [&]() -> StatusOr<uint32_t> {
    if (const TopLogits* top = engine.top()) {
      if (const std::optional<uint32_t> id = sampler.sample_top(*top))
        return *id;
      CORTIQ_ASSIGN_OR_RETURN(logits, engine.whole_row());
    }
    CORTIQ_RETURN_IF_ERROR(check_logits(logits, engine.vocab(), stepper.position() - 1));
    if (!options.constraint)
      return sampler.sample(logits);
    masked.assign(logits.begin(), logits.end());
    options.constraint->mask(masked);
    return sampler.sample(masked);
  };
  while (!logits.empty() && out.tokens.size() < options.max_tokens) {
    CORTIQ_ASSIGN_OR_RETURN(const uint32_t id, choose());
    if (out.tokens.empty()) {
      out.first_token_seconds = seconds_since(start);
      decode_start = Clock::now();
    }
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end()) {
      out.finish = FinishReason::kStop;
      break;
    }
    sampler.observe(id);
    out.tokens.push_back(id);
    if (sink)
      CORTIQ_RETURN_IF_ERROR(sink(id, engine.top() ? std::span<const float>() : logits));
    if (options.constraint && !options.constraint->accept(id)) {
      out.finish = FinishReason::kStop;
      break;
    }
    if (out.tokens.size() == options.max_tokens || stepper.position() == engine.max_context())
      break; // the last token needs no forward pass
    if (cancelled()) {
      out.finish = FinishReason::kCancelled;
      break;
    }
    CORTIQ_ASSIGN_OR_RETURN(logits, stepper.next(id, options.max_tokens - out.tokens.size()));
  }
  out.drafts = stepper.counts();
  if (!out.tokens.empty())
    out.decode_seconds = seconds_since(decode_start);
  return out;
}

Status collect_logits(Engine& engine, std::span<const uint32_t> prompt, const LogitsSink& sink) {
  CORTIQ_RETURN_IF_ERROR(check_prompt(engine, prompt));
  const uint64_t batch = std::max<uint64_t>(1, engine.preferred_batch());
  while (!prompt.empty()) {
    const uint64_t count = std::min<uint64_t>(batch, prompt.size());
    const uint64_t first = engine.position();
    CORTIQ_ASSIGN_OR_RETURN(const std::span<const float> logits, engine.forward(prompt.first(count), true));
    CORTIQ_RETURN_IF_ERROR(check_logits(logits, engine.vocab(), first));
    CORTIQ_RETURN_IF_ERROR(sink(logits));
    prompt = prompt.subspan(count);
  }
  return {};
}

} // namespace cortiq::runtime
