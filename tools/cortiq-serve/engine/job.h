#pragma once

// One request for text, from the connection that asked to the worker that generates, and back.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/overlay/selection.h"
#include "runtime/generate/generate.h"
#include "runtime/generate/token_constraint.h"
#include "runtime/sampling/sampler.h"

namespace cortiq::serve {

/// What to generate. Checked: the prompt fits the context, and every value is in its range.
struct Request {
  std::string client; ///< whose turn it is when several wait
  std::vector<uint32_t> prompt;
  runtime::sampling::SamplingOptions sampling;
  uint64_t max_tokens = UINT64_MAX;
  std::vector<std::string> stops; ///< texts that end the answer
  bool ignore_end = false;        ///< the model's own end tokens do not
  formats::OverlaySelection overlay;
  std::optional<uint32_t> logprobs; ///< wanted for the chosen token and so many of the likeliest
  /// What may be chosen; of this request alone. Null: everything.
  std::shared_ptr<runtime::TokenConstraint> constraint = nullptr;
};

/// A token and how likely the model itself thought it, before temperature, penalties and filters.
struct TokenRecord {
  uint32_t id = 0;
  double logprob = 0;
  std::vector<std::pair<uint32_t, double>> likeliest; ///< descending
  uint64_t text_offset = 0;                           ///< where its text begins in the answer, in bytes
};

/// What became final in one go.
struct Piece {
  std::string text;
  std::vector<TokenRecord> tokens; ///< with Request::logprobs: one for each token since the last piece
};

enum class Outcome {
  kStop,      ///< an end token or a stop text
  kLength,    ///< the token limit or the context
  kCancelled, ///< the client left, the time was up, or the server ends
  kFailed,
};

struct Finish {
  Outcome outcome = Outcome::kFailed;
  std::string message; ///< of a failure, for the client
  uint64_t prompt_tokens = 0, kept_tokens = 0, generated_tokens = 0;
};

/// The channel between the two. The connection waits and may cancel; the worker pushes and finishes.
class Job {
public:
  using Clock = std::chrono::steady_clock;

  Job(Request request, Clock::time_point deadline) : request(std::move(request)), deadline(deadline) {}

  const Request request;
  const Clock::time_point deadline;
  const Clock::time_point arrived = Clock::now();

  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_ || Clock::now() >= deadline; }

  void push(Piece piece);
  void finish(Finish finish);

  /// Waits for up to `patience`. True: `pieces` has what came, and finished() may have become something.
  bool wait(std::chrono::milliseconds patience, std::vector<Piece>& pieces);
  std::optional<Finish> finished() const;

private:
  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Piece> pieces_;
  std::optional<Finish> finish_;
};

} // namespace cortiq::serve
