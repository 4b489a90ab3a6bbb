#pragma once

// Text and tokens on their way to a job.

#include <cstdint>
#include <optional>
#include <span>

#include "formats/status.h"
#include "runtime/text/tokenizer.h"
#include "tools/cortiq-serve/engine/job.h"
#include "tools/cortiq-serve/engine/stop_text.h"

namespace cortiq::serve {

/// Makes pieces of tokens: text as far as it is certain, with what the request wants to know of each token.
class Answer {
public:
  /// Both must outlive it.
  Answer(Job& job, const runtime::text::Tokenizer& tokenizer);

  /// A token that was chosen from `logits`.
  Status take(uint32_t id, std::span<const float> logits);
  /// Nothing more comes: what was held back goes out.
  Status end();
  /// A stop text was met.
  bool stopped() const { return stops_.stopped(); }
  uint64_t tokens() const { return tokens_; }
  /// When the first piece went out.
  std::optional<Job::Clock::time_point> first() const { return first_; }

private:
  void send();

  Job& job_;
  runtime::text::StreamDecoder decoder_;
  StopText stops_;
  Piece piece_;
  uint64_t tokens_ = 0, decoded_ = 0;
  std::optional<Job::Clock::time_point> first_;
};

} // namespace cortiq::serve
