#include "tools/cortiq-serve/engine/batch_loop.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "runtime/generate/model_sampler.h"

namespace cortiq::serve {

using runtime::BatchEngine;

/// A request at work.
struct BatchLoop::Running {
  Running(std::shared_ptr<Job> job, runtime::sampling::Sampler sampler, const runtime::text::Tokenizer& tokenizer)
      : job(std::move(job)), sampler(std::move(sampler)), answer(*this->job, tokenizer),
        text(this->job->request.prompt) {
    finish.prompt_tokens = text.size();
  }

  const Request& request() const { return job->request; }

  std::shared_ptr<Job> job;
  runtime::sampling::Sampler sampler;
  Answer answer;
  std::vector<uint32_t> text;                    ///< the prompt and what came of it
  std::optional<BatchEngine::Sequence> sequence; ///< none: it waits, or gave up its pages
  bool begun = false;                            ///< it was open before
  bool ended = false;
  uint64_t turn = 0;  ///< the latest round of its selection
  uint64_t round = 0; ///< of its latest step
  std::vector<float> masked;
  Finish finish;
};

BatchLoop::BatchLoop(uint64_t token_count, std::shared_ptr<const runtime::text::TextModel> text,
                     std::unique_ptr<BatchEngine> engine)
    : token_count_(token_count), text_(std::move(text)), engine_(std::move(engine)), crew_(engine_->threads()) {}

BatchLoop::~BatchLoop() = default;

void BatchLoop::admit(std::shared_ptr<Job> job) {
  runtime::sampling::Sampler sampler =
      runtime::model_sampler(job->request.sampling, engine_->vocab(), token_count_, text_->config.suppress_ids);
  sampler.observe(job->request.prompt);
  running_.push_back(std::make_unique<Running>(std::move(job), std::move(sampler), text_->tokenizer));
}

void BatchLoop::round(std::vector<Ended>& ended) {
  ++rounds_;
  drop_cancelled();
  open_waiting();
  const std::vector<Running*> group = choose_group();
  line_up(group);
  if (!parts_.empty())
    step();
  collect(ended);
}

void BatchLoop::fail_all(const std::string& why, std::vector<Ended>& ended) {
  for (const Member& member : running_)
    end(*member, Outcome::kFailed, why);
  collect(ended);
}

void BatchLoop::drop_cancelled() {
  for (const Member& member : running_)
    if (member->job->cancelled())
      end(*member, Outcome::kCancelled);
}

/// The oldest first; one for which there is no room keeps the younger ones from taking it.
void BatchLoop::open_waiting() {
  for (const Member& member : running_) {
    if (member->ended || member->sequence || should_wait(*member))
      continue;
    if (!has_room(*member))
      return;
    open(*member);
  }
}

/// Whether another one is about to compute more of this one's beginning than is known.
bool BatchLoop::should_wait(const Running& member) const {
  const std::vector<uint32_t>& text = member.text;
  std::optional<uint64_t> known;
  for (const Member& other : running_) {
    if (!other->sequence || !(other->request().overlay == member.request().overlay) ||
        engine_->position(*other->sequence) >= other->request().prompt.size())
      continue;
    const std::vector<uint32_t>& prompt = other->request().prompt;
    if (!member.begun && prompt == text)
      return true;
    if (!engine_->shares_beginnings())
      continue;
    const auto common = static_cast<uint64_t>(
        std::mismatch(prompt.begin(), prompt.end(), text.begin(), text.end()).first - prompt.begin());
    if (!known)
      known = engine_->known(member.request().overlay, text);
    if (common / runtime::kPositionBlock * runtime::kPositionBlock > *known)
      return true;
  }
  return false;
}

/// Pages for its whole text, and one for each that is open already; with nobody open there is room for all.
bool BatchLoop::has_room(const Running& member) const {
  const auto open = static_cast<uint64_t>(
      std::count_if(running_.begin(), running_.end(), [](const Member& other) { return other->sequence.has_value(); }));
  const uint64_t pages = member.text.size() / runtime::kPositionBlock + 1;
  return open == 0 || pages + open <= engine_->pages_available();
}

void BatchLoop::open(Running& member) {
  const StatusOr<BatchEngine::Sequence> opened = engine_->open(member.request().overlay, member.text);
  if (!opened.ok())
    return end(member, Outcome::kFailed, opened.status().message());
  member.sequence = *opened;
  if (!member.begun)
    member.finish.kept_tokens = engine_->position(*opened);
  member.begun = true;
}

/// All that can be in a step with the one whose turn was longest ago.
std::vector<BatchLoop::Running*> BatchLoop::choose_group() {
  const Running* first = nullptr;
  for (const Member& member : running_)
    if (!member->ended && member->sequence && (!first || member->turn < first->turn))
      first = member.get();
  std::vector<Running*> group;
  for (const Member& member : running_)
    if (!member->ended && member->sequence && engine_->compatible(*first->sequence, *member->sequence))
      group.push_back(member.get());
  return group;
}

void BatchLoop::line_up(const std::vector<Running*>& group) {
  members_.clear();
  parts_.clear();
  reserved_ = 0;
  std::vector<Running*> answering, reading;
  for (Running* member : group) // whether there is room for it or not: others may have to end first
    member->turn = rounds_;
  for (Running* member : group)
    (member->text.size() - engine_->position(*member->sequence) == 1 ? answering : reading).push_back(member);
  if (answering.size() > engine_->max_batch()) {
    std::sort(answering.begin(), answering.end(),
              [](const Running* a, const Running* b) { return a->round < b->round; });
    answering.resize(engine_->max_batch());
  }
  for (Running* member : answering)
    if (member->sequence && make_room(*member, 1))
      add_part(*member, 1);
  uint64_t left = chunks_.chunk(parts_.size(), engine_->max_batch() - parts_.size());
  for (Running* member : reading) {
    if (left == 0)
      return;
    if (!member->sequence)
      continue;
    uint64_t tokens = std::min<uint64_t>(left, same_origin(*member));
    // With others in the step it takes what is free, and waits otherwise: they end some time.
    while (tokens != 0 && !parts_.empty() &&
           reserved_ + engine_->pages_for(*member->sequence, tokens) > engine_->pages_available())
      tokens = tokens > runtime::kPositionBlock ? tokens - runtime::kPositionBlock : tokens - 1;
    if (tokens == 0 || !make_room(*member, tokens))
      continue;
    add_part(*member, tokens);
    left -= tokens;
  }
}

/// Takes pages from the youngest that are younger than `member` until its next tokens fit.
bool BatchLoop::make_room(const Running& member, uint64_t tokens) {
  while (reserved_ + engine_->pages_for(*member.sequence, tokens) > engine_->pages_available()) {
    Running* youngest = nullptr;
    for (auto other = running_.rbegin(); other->get() != &member; ++other)
      if ((*other)->sequence && std::find(members_.begin(), members_.end(), other->get()) == members_.end()) {
        youngest = other->get();
        break;
      }
    if (!youngest)
      return false;
    engine_->close(*youngest->sequence);
    youngest->sequence.reset();
    ++counts_.preempted;
  }
  return true;
}

/// Of what is not computed yet: what is left of the prompt, or else of the answer that gave up its pages.
uint64_t BatchLoop::same_origin(const Running& member) const {
  const uint64_t position = engine_->position(*member.sequence), prompt = member.request().prompt.size();
  return (position < prompt ? prompt : member.text.size()) - position;
}

void BatchLoop::add_part(Running& member, uint64_t tokens) {
  const uint64_t position = engine_->position(*member.sequence);
  reserved_ += engine_->pages_for(*member.sequence, tokens);
  members_.push_back(&member);
  parts_.push_back({.sequence = *member.sequence,
                    .tokens = std::span(member.text).subspan(position, tokens),
                    .logits = position + tokens == member.text.size(),
                    .generated = position >= member.request().prompt.size()});
  if (!member.request().constraint && !member.request().logprobs && member.sampler.takes_top()) {
    parts_.back().top = member.sampler.ask_top();
    parts_.back().choose = [&member](const runtime::TopLogits& top) { return member.sampler.sample_top(top); };
  }
  member.round = rounds_;
}

void BatchLoop::step() {
  const auto start = Job::Clock::now();
  const StatusOr<std::span<const BatchEngine::Result>> results = engine_->step(parts_);
  uint64_t tokens = 0;
  choices_.clear();
  for (size_t i = 0; i < parts_.size(); ++i) {
    tokens += parts_[i].tokens.size();
    counts_.step_answers += parts_[i].tokens.size() == 1 ? 1 : 0;
    Running& member = *members_[i];
    const Status& status = results.ok() ? (*results)[i].status : results.status();
    if (!status.ok()) {
      end(member, Outcome::kFailed, status.message());
    } else if (parts_[i].logits) {
      const std::span<const float> logits = (*results)[i].logits;
      choices_.push_back({&member, logits, (*results)[i].chosen, std::nullopt, {}});
      if (member.text.size() == member.request().prompt.size())
        fork(member, logits);
    }
  }
  choose_tokens();
  ++counts_.steps;
  counts_.step_tokens += tokens;
  chunks_.ran(tokens, std::chrono::duration<double>(Job::Clock::now() - start).count());
}

/// Those that wait with the same prompt go on from here.
void BatchLoop::fork(const Running& leader, std::span<const float> logits) {
  for (const Member& member : running_) {
    if (member->ended || member->begun || member->text != leader.text ||
        !(member->request().overlay == leader.request().overlay))
      continue;
    const StatusOr<BatchEngine::Sequence> forked = engine_->fork(*leader.sequence);
    if (!forked.ok())
      return; // they begin on their own
    member->sequence = *forked;
    member->begun = true;
    member->finish.kept_tokens = leader.text.size();
    choices_.push_back({member.get(), logits, std::nullopt, std::nullopt, {}});
  }
}

void BatchLoop::choose_tokens() {
  crew_.run(choices_.size(), [&](size_t i) {
    Choice& choice = choices_[i];
    try {
      choice.status = choose_token(choice, choice.outcome);
    } catch (const std::bad_alloc&) {
      choice.status = io_error("there is not enough memory for this request");
    }
  });
  for (const Choice& choice : choices_)
    if (!choice.status.ok())
      end(*choice.member, Outcome::kFailed, choice.status.message());
    else if (choice.outcome)
      end(*choice.member, *choice.outcome);
}

/// Touches nothing but the member, so that several can be at it at once.
Status BatchLoop::choose_token(const Choice& choice, std::optional<Outcome>& outcome) const {
  Running& member = *choice.member;
  const std::span<const float> logits = choice.logits;
  const Request& request = member.request();
  if (request.max_tokens == 0) {
    outcome = Outcome::kLength;
    return {};
  }
  std::span<const float> allowed = logits;
  if (request.constraint) {
    member.masked.assign(logits.begin(), logits.end());
    request.constraint->mask(member.masked);
    allowed = member.masked;
  }
  uint32_t id = choice.chosen.value_or(0);
  if (!choice.chosen) {
    CORTIQ_ASSIGN_OR_RETURN(id, member.sampler.sample(allowed));
  }
  if (!request.ignore_end && is_end(id)) {
    outcome = Outcome::kStop;
    return {};
  }
  member.sampler.observe(id);
  member.text.push_back(id);
  CORTIQ_RETURN_IF_ERROR(member.answer.take(id, logits));
  if (member.answer.stopped() || (request.constraint && !request.constraint->accept(id)))
    outcome = Outcome::kStop;
  else if (member.answer.tokens() >= request.max_tokens || member.text.size() > engine_->max_context())
    outcome = Outcome::kLength;
  return {};
}

bool BatchLoop::is_end(uint32_t id) const {
  const std::vector<uint32_t>& ends = text_->config.eos_ids;
  return std::find(ends.begin(), ends.end(), id) != ends.end();
}

/// The pages are free at once; collect() takes the rest away.
void BatchLoop::end(Running& member, Outcome outcome, std::string message) {
  if (member.ended)
    return;
  if (member.sequence)
    engine_->close(*member.sequence);
  member.sequence.reset();
  member.ended = true;
  if (outcome != Outcome::kFailed)
    if (const Status flushed = member.answer.end(); !flushed.ok()) {
      outcome = Outcome::kFailed;
      message = flushed.message();
    }
  member.finish.outcome = outcome;
  member.finish.message = std::move(message);
  member.finish.generated_tokens = member.answer.tokens();
}

void BatchLoop::collect(std::vector<Ended>& ended) {
  std::erase_if(running_, [&](const Member& member) {
    if (member->ended)
      ended.push_back({member->job, std::move(member->finish), member->answer.first()});
    return member->ended;
  });
}

} // namespace cortiq::serve
