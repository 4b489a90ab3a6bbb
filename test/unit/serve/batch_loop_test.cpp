#include "tools/cortiq-serve/engine/batch_loop.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "test/unit/text/tiny_tokenizer.h"
#include "tools/cortiq-serve/engine/chunk_policy.h"

namespace cortiq::serve {
namespace {

using runtime::BatchEngine;
using runtime::kPositionBlock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kContext = 400, kMaxBatch = 48;

/// The token behind a text: a printable character that all of the text decides, under the selection.
uint32_t behind(std::span<const uint32_t> text, size_t selection) {
  uint64_t hash = 1469598103934665603u + selection;
  for (const uint32_t id : text)
    hash = (hash ^ id) * 1099511628211u;
  return 'a' + static_cast<uint32_t>((hash >> 20) % 26);
}

/// A token as the engine holds it, which computes what was generated in other numbers than prompts.
constexpr uint32_t generated(uint32_t id) {
  return id | 1u << 31;
}

/// An engine whose sequences hold tokens and count pages, and whose logits name behind().
class FakeEngine final : public BatchEngine {
public:
  FakeEngine(uint64_t sequences, uint64_t pages) : held_(sequences), pages_(pages) {}

  uint64_t vocab() const override { return runtime::text::kTinyVocab; }
  uint64_t max_context() const override { return kContext; }
  uint64_t max_batch() const override { return kMaxBatch; }
  uint64_t sequences() const override { return held_.size(); }
  unsigned threads() const override { return 3; }
  StatusOr<Sequence> open(const formats::OverlaySelection& selection, std::span<const uint32_t>) override {
    for (size_t i = 0; i < held_.size(); ++i)
      if (!held_[i].open) {
        held_[i] = {true, selection.shares.size(), {}};
        return static_cast<Sequence>(i);
      }
    ADD_FAILURE() << "more sequences than there are";
    return io_error("in use");
  }
  StatusOr<Sequence> fork(Sequence from) override {
    ++forks;
    CORTIQ_ASSIGN_OR_RETURN(const Sequence number, open({}, {}));
    held_[number] = held_[from];
    if (used() > pages_) {
      held_[number] = {};
      return io_error("no page");
    }
    return number;
  }
  void close(Sequence sequence) override {
    EXPECT_TRUE(held_[sequence].open);
    held_[sequence] = {};
  }
  uint64_t position(Sequence sequence) const override { return held_[sequence].tokens.size(); }
  bool compatible(Sequence a, Sequence b) const override { return held_[a].selection == held_[b].selection; }
  bool shares_beginnings() const override { return false; }
  uint64_t known(const formats::OverlaySelection&, std::span<const uint32_t>) const override { return 0; }
  uint64_t pages_for(Sequence sequence, uint64_t tokens) const override {
    const uint64_t held = held_[sequence].tokens.size();
    return pages_of(held + tokens) - pages_of(held);
  }
  uint64_t pages_available() const override { return pages_ - used(); }
  runtime::BatchCacheState cache() const override { return {}; }
  runtime::Profile profile() const override { return {}; }

  StatusOr<std::span<const Result>> step(std::span<const Part> parts) override {
    results_.clear();
    rows_.assign(parts.size(), std::vector<float>(vocab(), 0.0f));
    uint64_t tokens = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      Held& held = held_[parts[i].sequence];
      EXPECT_TRUE(held.open && compatible(parts[0].sequence, parts[i].sequence));
      for (const uint32_t id : parts[i].tokens)
        held.tokens.push_back(parts[i].generated ? generated(id) : id);
      tokens += parts[i].tokens.size();
      rows_[i][behind(held.tokens, held.selection)] = 1;
      Result result;
      if (std::find(held.tokens.begin(), held.tokens.end(), 0u) != held.tokens.end())
        result.status = unsupported("a zero");
      if (parts[i].logits)
        result.logits = rows_[i];
      results_.push_back(result);
    }
    EXPECT_LE(tokens, kMaxBatch);
    EXPECT_LE(used(), pages_);
    ++steps;
    return std::span<const Result>(results_);
  }

  int forks = 0, steps = 0;

private:
  struct Held {
    bool open = false;
    size_t selection = 0;
    std::vector<uint32_t> tokens;
  };
  static uint64_t pages_of(uint64_t tokens) { return (tokens + kPositionBlock - 1) / kPositionBlock; }
  uint64_t used() const {
    uint64_t out = 0;
    for (const Held& held : held_)
      out += pages_of(held.tokens.size());
    return out;
  }
  std::vector<Held> held_;
  uint64_t pages_;
  std::vector<Result> results_;
  std::vector<std::vector<float>> rows_;
};

class BatchLoopTest : public ::testing::Test {
protected:
  void make(uint64_t sequences, uint64_t pages) {
    auto engine = std::make_unique<FakeEngine>(sequences, pages);
    engine_ = engine.get();
    runtime::text::TextConfig config;
    config.eos_ids = {runtime::text::kTinyEnd};
    auto text = std::make_shared<const runtime::text::TextModel>(
        runtime::text::TextModel{runtime::text::tiny_tokenizer(), config});
    loop_ = std::make_unique<BatchLoop>(0, std::move(text), std::move(engine));
  }

  static std::shared_ptr<Job> job(std::vector<uint32_t> prompt, uint64_t tokens, size_t selection = 0) {
    Request request;
    request.prompt = std::move(prompt);
    request.sampling = runtime::sampling::SamplingOptions::greedy();
    request.max_tokens = tokens;
    request.overlay.shares.resize(selection);
    return std::make_shared<Job>(std::move(request), Job::Clock::now() + std::chrono::hours(1));
  }

  std::map<Job*, Finish> run(int rounds = 20000) {
    std::map<Job*, Finish> out;
    std::vector<BatchLoop::Ended> ended;
    for (int i = 0; i < rounds && loop_->size() != 0; ++i) {
      loop_->round(ended);
      for (auto& one : ended)
        out[one.job.get()] = one.finish;
      ended.clear();
    }
    return out;
  }

  static std::string text_of(Job& job) {
    std::string out;
    std::vector<Piece> pieces;
    while (job.wait(std::chrono::milliseconds(0), pieces))
      for (const Piece& piece : pieces)
        out += piece.text;
    return out;
  }

  static std::string expected(const Request& request) {
    std::string out;
    std::vector<uint32_t> text = request.prompt;
    while (out.size() < request.max_tokens && text.size() <= kContext) {
      const uint32_t id = behind(text, request.overlay.shares.size());
      text.push_back(generated(id));
      out += static_cast<char>(id);
    }
    return out;
  }

  FakeEngine* engine_ = nullptr;
  std::unique_ptr<BatchLoop> loop_;
};

std::vector<uint32_t> prompt(uint32_t seed, uint32_t count) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < count; ++i)
    out.push_back('a' + (i * 7 + seed * 13 + i * i * seed) % 26);
  return out;
}

TEST_F(BatchLoopTest, AnswersAreThoseOfEachAloneHoweverShortPagesAre) {
  for (const uint64_t pages : {7u, 8u, 12u, 40u}) {
    std::mt19937 random(static_cast<uint32_t>(pages));
    make(9, pages);
    std::vector<std::shared_ptr<Job>> jobs;
    std::map<Job*, Finish> finished;
    for (uint32_t i = 0; i < 60 || loop_->size() != 0; ++i) {
      if (i < 60 && !loop_->full()) {
        jobs.push_back(job(prompt(i % 20, 1 + random() % 300), random() % 150, random() % 5 == 0));
        loop_->admit(jobs.back());
      }
      for (auto& [one, finish] : run(1 + static_cast<int>(random() % 30)))
        finished[one] = finish;
      ASSERT_LT(i, 5000u) << "no end with " << pages << " pages";
    }
    for (const auto& one : jobs) {
      ASSERT_EQ(text_of(*one), expected(one->request)) << pages << " pages";
      ASSERT_EQ(finished.at(one.get()).outcome, Outcome::kLength);
    }
    EXPECT_EQ(engine_->pages_available(), pages);
    EXPECT_EQ(loop_->counts().preempted != 0, pages < 40);
  }
}

TEST_F(BatchLoopTest, ChoicesOfOnePromptComputeItOnce) {
  make(6, 100);
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 5; ++i) {
    jobs.push_back(job(prompt(3, 200), 20));
    loop_->admit(jobs.back());
  }
  auto finished = run();
  EXPECT_EQ(engine_->forks, 4);
  for (size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(text_of(*jobs[i]), expected(jobs[i]->request));
    EXPECT_EQ(finished[jobs[i].get()].kept_tokens, i == 0 ? 0u : 200u);
  }
}

TEST_F(BatchLoopTest, ALongPromptDoesNotHoldAnswersUp) {
  make(4, 100);
  const auto answer = job(prompt(1, 3), 300);
  loop_->admit(answer);
  std::vector<BatchLoop::Ended> ended;
  loop_->round(ended);
  const auto reader = job(prompt(2, 390), 5);
  loop_->admit(reader);
  std::vector<Piece> pieces;
  uint64_t rounds = 0;
  for (std::vector<Piece> of_reader; !reader->wait(std::chrono::milliseconds(0), of_reader); ++rounds) {
    loop_->round(ended);
    ASSERT_TRUE(answer->wait(std::chrono::milliseconds(0), pieces)) << "a round without a token of the answer";
    ASSERT_LT(rounds, 100u);
  }
  EXPECT_GT(rounds, 5u);
}

TEST_F(BatchLoopTest, SelectionsTakeTurns) {
  make(4, 100);
  std::vector<std::shared_ptr<Job>> jobs;
  for (size_t i = 0; i < 4; ++i) {
    jobs.push_back(job(prompt(1, 5), 40, i % 2));
    loop_->admit(jobs.back());
  }
  std::vector<BatchLoop::Ended> ended;
  for (int i = 0; i < 20; ++i)
    loop_->round(ended);
  for (const auto& one : jobs)
    EXPECT_EQ(text_of(*one), expected(one->request).substr(0, 10));
}

TEST_F(BatchLoopTest, AFailureAndAClientThatLeavesDisturbNobody) {
  make(4, 100);
  const auto fine = job(prompt(1, 5), 40), gone = job(prompt(2, 5), 40);
  std::vector<uint32_t> zero = prompt(3, 5);
  zero[2] = 0;
  const auto bad = job(zero, 40);
  for (const auto& one : {fine, gone, bad})
    loop_->admit(one);
  std::vector<BatchLoop::Ended> ended;
  loop_->round(ended);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].job, bad);
  EXPECT_EQ(ended[0].finish.outcome, Outcome::kFailed);
  EXPECT_THAT(ended[0].finish.message, HasSubstr("zero"));
  gone->cancel();
  ended.clear();
  loop_->round(ended);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].finish.outcome, Outcome::kCancelled);
  run();
  EXPECT_EQ(text_of(*fine), expected(fine->request));
  EXPECT_EQ(engine_->pages_available(), 100u);
}

/// Only vowels, three of them.
class Vowels : public runtime::TokenConstraint {
public:
  void mask(std::span<float> logits) override {
    for (size_t id = 0; id < logits.size(); ++id)
      if (std::string("aeiou").find(static_cast<char>(id)) == std::string::npos || id > 127)
        logits[id] = -INFINITY;
  }
  bool accept(uint32_t) override { return ++accepted < 3; }
  int accepted = 0;
};

TEST_F(BatchLoopTest, AConstraintNarrowsItsOwnRequestAlone) {
  make(4, 100);
  Request request;
  request.prompt = prompt(1, 5);
  request.sampling = runtime::sampling::SamplingOptions::greedy();
  request.constraint = std::make_shared<Vowels>();
  const auto held = std::make_shared<Job>(request, Job::Clock::now() + std::chrono::hours(1));
  const auto free = job(prompt(1, 5), 10);
  loop_->admit(held);
  loop_->admit(free);
  auto finished = run();
  const std::string text = text_of(*held);
  EXPECT_EQ(text.size(), 3u);
  EXPECT_EQ(text.find_first_not_of("aeiou"), std::string::npos) << text;
  EXPECT_EQ(finished[held.get()].outcome, Outcome::kStop);
  EXPECT_EQ(text_of(*free), expected(free->request));
}

TEST(ChunkPolicy, KeepsStepsShort) {
  ChunkPolicy policy;
  EXPECT_EQ(policy.chunk(0, 200), 200u); // nobody waits
  EXPECT_EQ(policy.chunk(40, 200), 40u); // nothing is known yet
  // 10 ms and 0.1 ms a token: eight answers take 10.8 ms, as much again is 108 tokens.
  for (const uint64_t tokens : {8, 24, 40, 8, 8, 100, 30, 8, 8, 60})
    policy.ran(tokens, 0.010 + 0.0001 * static_cast<double>(tokens));
  EXPECT_NEAR(static_cast<double>(policy.chunk(8, 1000)), 108, 2);
  EXPECT_EQ(policy.chunk(8, 50), 50u);
  // A token costs as much as a step of eight: the least goes on.
  ChunkPolicy slow;
  for (const uint64_t tokens : {8, 24, 40, 8, 8, 100, 30, 8, 8, 60})
    slow.ran(tokens, 0.01 * static_cast<double>(tokens));
  EXPECT_EQ(slow.chunk(8, 1000), ChunkPolicy::kLeast);
}

} // namespace
} // namespace cortiq::serve
