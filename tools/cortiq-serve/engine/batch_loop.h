#pragma once

// What is being answered, computed together: each round is one step for all that can be in it.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/status.h"
#include "runtime/batch/batch_engine.h"
#include "runtime/text/text_section.h"
#include "tools/cortiq-serve/engine/answer.h"
#include "tools/cortiq-serve/engine/chunk_policy.h"
#include "tools/cortiq-serve/engine/crew.h"
#include "tools/cortiq-serve/engine/job.h"

namespace cortiq::serve {

struct BatchCounts {
  uint64_t steps = 0, step_tokens = 0; ///< of all steps; of prompts and answers
  uint64_t step_answers = 0;           ///< of those, tokens of answers
  uint64_t preempted = 0;              ///< times that a request gave up its pages for older ones
};

/// Not thread-safe; a job's cancel() may come from anywhere. Its tokens are those of a session alone.
///
/// A round takes all answers of one selection of the overlay, one token each, and a bounded number of tokens of their
/// prompts; selections take turns. When the cache has no page left for an older request, the youngest gives up its
/// pages and is computed again later: the oldest always gets on. Requests whose prompts begin alike wait for the first
/// of them to have computed what they share.
class BatchLoop {
public:
  struct Ended {
    std::shared_ptr<Job> job;
    Finish finish;
    std::optional<Job::Clock::time_point> first; ///< when its first piece went out
  };

  /// Ids from `token_count` on are never chosen; 0: all may be.
  BatchLoop(uint64_t token_count, std::shared_ptr<const runtime::text::TextModel> text,
            std::unique_ptr<runtime::BatchEngine> engine);
  ~BatchLoop();

  const runtime::BatchEngine& engine() const { return *engine_; }
  /// Requests at work; at most engine().sequences().
  size_t size() const { return running_.size(); }
  bool full() const { return running_.size() >= engine_->sequences(); }
  /// Takes a job on. The loop must not be full.
  void admit(std::shared_ptr<Job> job);
  /// One step and what comes of it; the jobs that ended go to `ended`, unfinished: the caller tells them.
  void round(std::vector<Ended>& ended);
  /// Ends everything with a failure.
  void fail_all(const std::string& why, std::vector<Ended>& ended);
  const BatchCounts& counts() const { return counts_; }

private:
  struct Running;
  using Member = std::unique_ptr<Running>;

  void drop_cancelled();
  void open_waiting();
  bool should_wait(const Running& member) const;
  bool has_room(const Running& member) const;
  void open(Running& member);
  std::vector<Running*> choose_group();
  void line_up(const std::vector<Running*>& group);
  bool make_room(const Running& member, uint64_t tokens);
  uint64_t same_origin(const Running& member) const;
  void add_part(Running& member, uint64_t tokens);
  void step();
  void fork(const Running& leader, std::span<const float> logits);
  struct Choice {
    Running* member;
    std::span<const float> logits;
    std::optional<uint32_t> chosen; ///< in the step, from the largest logits
    std::optional<Outcome> outcome; ///< it was the last one
    Status status;
  };
  void choose_tokens();
  Status choose_token(const Choice& choice, std::optional<Outcome>& outcome) const;
  void end(Running& member, Outcome outcome, std::string message = "");
  void collect(std::vector<Ended>& ended);
  bool is_end(uint32_t id) const;

  const uint64_t token_count_;
  const std::shared_ptr<const runtime::text::TextModel> text_;
  const std::unique_ptr<runtime::BatchEngine> engine_;
  std::vector<Member> running_; ///< the oldest first
  ChunkPolicy chunks_;
  Crew crew_; ///< chooses tokens: to weigh a large vocabulary takes as long as a good part of a step
  uint64_t rounds_ = 0;
  BatchCounts counts_;

  // Of a round.
  std::vector<Running*> members_; ///< of the parts
  std::vector<runtime::BatchEngine::Part> parts_;
  uint64_t reserved_ = 0; ///< pages that the parts take
  /// A token that is to be chosen.
  std::vector<Choice> choices_;
};

} // namespace cortiq::serve
