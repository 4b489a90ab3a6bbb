#include "tools/cortiq-serve/engine/answer.h"

#include <utility>

#include "tools/cortiq-serve/engine/log_probabilities.h"

namespace cortiq::serve {

Answer::Answer(Job& job, const runtime::text::Tokenizer& tokenizer)
    : job_(job), decoder_(tokenizer), stops_(job.request.stops) {}

Status Answer::take(uint32_t id, std::span<const float> logits) {
  if (job_.request.logprobs) {
    TokenRecord record = token_record(logits, id, *job_.request.logprobs);
    record.text_offset = decoded_;
    piece_.tokens.push_back(std::move(record));
  }
  ++tokens_;
  CORTIQ_ASSIGN_OR_RETURN(const std::string text, decoder_.push(id));
  decoded_ += text.size();
  piece_.text = stops_.push(text);
  send();
  return {};
}

Status Answer::end() {
  CORTIQ_ASSIGN_OR_RETURN(const std::string rest, decoder_.flush());
  piece_.text = stops_.push(rest);
  piece_.text += stops_.flush();
  send();
  return {};
}

void Answer::send() {
  if (piece_.text.empty() && piece_.tokens.empty())
    return;
  if (!first_)
    first_ = Job::Clock::now();
  job_.push(std::exchange(piece_, {}));
}

} // namespace cortiq::serve
