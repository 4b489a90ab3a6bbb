#include "formats/overlay/selection.h"

#include <algorithm>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <thread>
#include <vector>

#include "runtime/session/session.h"
#include "test/unit/runtime/temporary_folder.h"
#include "test/unit/runtime/tiny_model.h"

namespace cortiq::runtime {
namespace {

using formats::OverlayRequest;
using formats::OverlaySelection;
using test::TinyModel;
using ::testing::HasSubstr;

// Sums of 56 f32 products through two layers, against doubles.
constexpr double kF32Error = 2e-5;
constexpr int kSwitches = 10000;
constexpr size_t kLeastSteps = 2000; // of each session while the switches go on

std::vector<uint32_t> some_tokens(size_t count) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(static_cast<uint32_t>((i * i * 7 + i * 3 + 5) % TinyModel::kVocab));
  return out;
}

class OverlayTest : public ::testing::Test {
protected:
  void SetUp() override {
    const Status written = base_.write(folder_.file("m.cqa"), skills_);
    ASSERT_TRUE(written.ok()) << written.message();
    auto model = Model::load(folder_.file("m.cqa"));
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *model;
  }

  std::unique_ptr<Session> session(unsigned threads = 1, std::shared_ptr<Executor> workers = nullptr) {
    SessionOptions options;
    options.threads = threads;
    options.workers = std::move(workers);
    options.kv = KvType::kF32;
    auto made = Session::create(model_, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }

  OverlaySelection select(const OverlayRequest& request) {
    auto selection = formats::select_overlay(model_->overlay(), request);
    EXPECT_TRUE(selection.ok()) << selection.status().message();
    return *selection;
  }

  void expect_reference(Session& session, const TinyModel& model, const char* what) {
    const auto tokens = some_tokens(30);
    session.reset();
    const auto logits = session.forward(tokens, true);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    const std::vector<double> expected = model.reference(tokens);
    ASSERT_EQ(logits->size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::abs((*logits)[i] - expected[i]));
    EXPECT_LT(worst, kF32Error * TinyModel::kLogitCap) << what;
  }

  test::TemporaryFolder folder_;
  TinyModel base_{1, 1};
  std::vector<TinyModel> skills_{TinyModel(1, 7), TinyModel(1, 99)};
  std::shared_ptr<const Model> model_;
};

TEST_F(OverlayTest, SelectionsComputeTheirModels) {
  using Mix = std::vector<std::pair<const TinyModel*, float>>;
  const auto own = session();
  auto check = [&](const OverlayRequest& request, const TinyModel& model, const char* what) {
    ASSERT_TRUE(own->set_overlay(select(request)).ok());
    expect_reference(*own, model, what);
  };
  expect_reference(*own, base_, "as loaded");
  check({.skill = "s0", .blend = {}, .task = {}}, base_.mixed(Mix{{&skills_[0], 1.0f}}), "skill s0");
  check({.skill = "s1", .blend = {}, .task = {}}, base_.mixed(Mix{{&skills_[1], 1.0f}}), "skill s1");
  check({.skill = {}, .blend = {{"s0", 1}, {"s1", 3}}, .task = {}},
        base_.mixed(Mix{{&skills_[0], 0.25f}, {&skills_[1], 0.75f}}), "blend");
  check({.skill = "none", .blend = {}, .task = {}}, base_, "none again");
  TinyModel half = base_;
  half.mask_half();
  check({.skill = {}, .blend = {}, .task = "half"}, half, "mask half");
  TinyModel both = base_.mixed(Mix{{&skills_[1], 1.0f}});
  both.mask_half();
  check({.skill = "s1", .blend = {}, .task = "half"}, both, "skill and mask");
  check({.skill = {}, .blend = {}, .task = "none"}, base_, "no mask");
}

// Switched in the middle, run again from the start: what a fresh session says.
TEST_F(OverlayTest, SwitchAndRunAgainIsAFreshSession) {
  const auto tokens = some_tokens(20);
  const auto switched = session(), fresh = session();
  ASSERT_TRUE(switched->forward(tokens, false).ok());
  const OverlaySelection s0 = select({.skill = "s0", .blend = {}, .task = {}});
  ASSERT_TRUE(switched->set_overlay(s0).ok());
  ASSERT_TRUE(fresh->set_overlay(s0).ok());
  switched->reset();
  const auto a = switched->forward(tokens, true);
  ASSERT_TRUE(a.ok());
  const std::vector<float> kept(a->begin(), a->end());
  const auto b = fresh->forward(tokens, true);
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(kept, std::vector<float>(b->begin(), b->end()));
}

// A session's selection ends with it, and the next one may stand in the same place of memory.
TEST_F(OverlayTest, WorkersTellSelectionsOfTheirSessionsApart) {
  const auto tokens = some_tokens(20);
  auto first = session(3);
  const auto second = session(3, first->workers()), fresh = session();
  ASSERT_TRUE(first->set_overlay(select({.skill = {}, .blend = {{"s0", 1}, {"s1", 3}}, .task = {}})).ok());
  ASSERT_TRUE(first->forward(tokens, true).ok());
  first.reset();
  const OverlaySelection other = select({.skill = {}, .blend = {{"s0", 3}, {"s1", 1}}, .task = {}});
  ASSERT_TRUE(second->set_overlay(other).ok());
  const auto a = second->forward(tokens, true);
  ASSERT_TRUE(a.ok());
  ASSERT_TRUE(fresh->set_overlay(other).ok());
  const auto b = fresh->forward(tokens, true);
  ASSERT_TRUE(b.ok());
  EXPECT_TRUE(std::ranges::equal(*a, *b));
}

uint32_t most_likely(std::span<const float> logits) {
  return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

struct Step {
  OverlaySelection selection;
  uint32_t token, next;
};

/// Generates until `stop`, starting anew whenever the context is full, and records under which selection each step ran.
std::vector<Step> generate_until(Session& session, uint32_t start, const std::atomic<bool>& stop,
                                 std::atomic<size_t>& count) {
  std::vector<Step> steps;
  uint32_t token = start;
  while (!stop.load(std::memory_order_relaxed)) {
    if (session.position() == session.max_context())
      session.reset();
    const auto logits = session.forward({&token, 1}, false);
    if (!logits.ok())
      break;
    const uint32_t next = most_likely(*logits);
    steps.push_back({session.latest_overlay(), token, next});
    token = next;
    count.store(steps.size(), std::memory_order_relaxed);
  }
  count.store(SIZE_MAX, std::memory_order_relaxed); // whoever waits for steps need not any more
  return steps;
}

// While two sessions generate, a third thread switches both of them at random. Every token must be what the recorded
// selections give when they are set one by one: a step that had seen parts of two selections would differ.
TEST_F(OverlayTest, RandomSwitchesUnderGeneration) {
  std::vector<OverlaySelection> choices;
  for (const char* skill : {"none", "s0", "s1"})
    for (const char* task : {"none", "open", "half"})
      choices.push_back(select({.skill = skill, .blend = {}, .task = task}));
  choices.push_back(select({.skill = {}, .blend = {{"s0", 0.5}, {"s1", 0.5}}, .task = {}}));
  const auto blend = model_->overlay_state(choices.back()); // kept: it is mixed once
  ASSERT_TRUE(blend.ok());
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(session(2));
  sessions.push_back(session(2));
  std::atomic<bool> stop{false};
  std::vector<Step> steps[2];
  std::atomic<size_t> counts[2] = {0, 0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back(
        [&, i] { steps[i] = generate_until(*sessions[i], static_cast<uint32_t>(i), stop, counts[i]); });
  std::mt19937 random(3);
  for (int i = 0; i < kSwitches || counts[0] < kLeastSteps || counts[1] < kLeastSteps; ++i) {
    EXPECT_TRUE(sessions[i % 2]->set_overlay(choices[random() % choices.size()]).ok());
    // Both sides go on at about the same speed: most steps see a switch.
    if (i > kSwitches || counts[i % 2] < kLeastSteps * static_cast<size_t>(i) / kSwitches)
      std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads)
    thread.join();
  for (const auto& recorded : steps) {
    ASSERT_FALSE(recorded.empty());
    const auto replay = session();
    for (const Step& step : recorded) {
      if (replay->position() == replay->max_context())
        replay->reset();
      ASSERT_TRUE(replay->set_overlay(step.selection).ok());
      const auto logits = replay->forward({&step.token, 1}, false);
      ASSERT_TRUE(logits.ok());
      ASSERT_EQ(most_likely(*logits), step.next);
    }
  }
}

TEST_F(OverlayTest, UnknownNamesAreRefused) {
  const auto skill = formats::select_overlay(model_->overlay(), {.skill = "poet", .blend = {}, .task = {}});
  ASSERT_FALSE(skill.ok());
  EXPECT_THAT(skill.status().message(), HasSubstr("'poet'; it has: s0, s1"));
  const auto task = formats::select_overlay(model_->overlay(), {.skill = {}, .blend = {}, .task = "deep"});
  ASSERT_FALSE(task.ok());
  EXPECT_THAT(task.status().message(), HasSubstr("'deep'; it has: open, half"));
}

} // namespace
} // namespace cortiq::runtime
