// The store of experts on a reader that a test can hold back and make fail, with as few places as there can be.

#include <condition_variable>
#include <cstring>
#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <thread>

#include "runtime/experts/expert_store.h"

namespace cortiq::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kBytes = 3000; ///< of a unit: a page of place

/// Fills a place with the offset it is read from, at once or when asked to.
class FakeReader final : public UnitReader {
public:
  FakeReader(ExpertStore& store, bool held) : store_(store), held_(held), thread_([this] { work(); }) {}
  ~FakeReader() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      held_ = false;
    }
    changed_.notify_all();
    thread_.join();
  }

  void start(const UnitRead& read) override {
    std::lock_guard lock(mutex_);
    queue_.push_back(read);
    units_.push_back(read.unit);
    changed_.notify_all();
  }
  const char* name() const override { return "fake"; }

  void let_go() {
    std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  void hold() {
    std::lock_guard lock(mutex_);
    held_ = true;
  }
  void fail(std::set<uint32_t> units) {
    std::lock_guard lock(mutex_);
    failing_ = std::move(units);
  }
  /// Units in the order of their reads since the last call.
  std::vector<uint32_t> take_units() {
    std::lock_guard lock(mutex_);
    return std::exchange(units_, {});
  }

private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return (stop_ && queue_.empty()) || (!held_ && !queue_.empty()); });
      if (queue_.empty())
        return;
      const UnitRead read = queue_.front();
      queue_.pop_front();
      const bool fails = failing_.contains(read.unit);
      lock.unlock();
      if (!fails)
        for (uint64_t at = 0; at < read.bytes; at += sizeof(uint64_t)) {
          const uint64_t value = read.offset + at;
          std::memcpy(read.to + at, &value, sizeof(value));
        }
      store_.complete(read.unit, fails ? io_error("unit " + std::to_string(read.unit) + " cannot be read") : Status());
      lock.lock();
    }
  }

  ExpertStore& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UnitRead> queue_;
  std::vector<uint32_t> units_;
  std::set<uint32_t> failing_;
  bool held_, stop_ = false;
  std::thread thread_;
};

struct Fixture {
  /// `layers` layers of `each` matrices of `experts` experts, and `places` places.
  Fixture(uint32_t layers, uint32_t each, uint32_t experts, uint64_t places, bool held = false) {
    std::vector<ExpertMatrix> matrices;
    uint64_t offset = 0;
    for (uint32_t layer = 0; layer < layers; ++layer)
      for (uint32_t m = 0; m < each; ++m) {
        ExpertMatrix& matrix = matrices.emplace_back(ExpertMatrix{layer, {}});
        for (uint32_t e = 0; e < experts; ++e, offset += 2 * kReadAlignment)
          matrix.experts.push_back({offset, kBytes});
      }
    auto made = ExpertStore::make(std::move(matrices));
    EXPECT_TRUE(made.ok());
    store = *std::move(made);
    auto fake = std::make_unique<FakeReader>(*store, held);
    reader = fake.get();
    store->attach(std::move(fake));
    store->set_limit(places * kReadAlignment);
  }

  std::unique_ptr<ExpertStore> store;
  FakeReader* reader;
};

/// Works through one matrix: every item of every expert. Whether all bytes were the right ones.
bool work(ExpertStep& step, uint32_t matrix, uint32_t experts, const std::vector<int32_t>& used, uint32_t items = 1) {
  ExpertTicket& ticket = step.open(matrix, used, items);
  bool right = true;
  for (uint32_t position = 0; position < used.size(); ++position)
    for (uint32_t item = 0; item < items; ++item) {
      const uint8_t* bytes = step.bytes(ticket, position);
      uint64_t value = UINT64_MAX;
      if (bytes)
        std::memcpy(&value, bytes, sizeof(value));
      right = right && bytes && value == (uint64_t{matrix} * experts + ticket.expert(position)) * 2 * kReadAlignment;
      step.finish(ticket, position, 1);
    }
  return right;
}

std::vector<uint32_t> order_of(const ExpertTicket& ticket, size_t count) {
  std::vector<uint32_t> order;
  for (size_t i = 0; i < count; ++i)
    order.push_back(ticket.expert(i));
  return order;
}

TEST(ExpertStore, WorksOnWhatIsThereFirst) {
  Fixture f(1, 1, 8, 8);
  ExpertStep step(*f.store);
  step.begin(1);
  EXPECT_TRUE(work(step, 0, 8, {5, 6}));
  EXPECT_THAT(f.reader->take_units(), ElementsAre(5, 6));
  step.begin(1);
  const std::vector<int32_t> used = {1, 4, 5, 6, 7};
  EXPECT_THAT(order_of(step.open(0, used, 1), 5), ElementsAre(5, 6, 1, 4, 7));
  EXPECT_TRUE(work(step, 0, 8, used));
  EXPECT_TRUE(step.end().ok());
  EXPECT_THAT(f.reader->take_units(), ElementsAre(1, 4, 7));
  EXPECT_EQ(f.store->statistics().uses, 7u);
  EXPECT_EQ(f.store->statistics().hits, 2u);
  EXPECT_EQ(f.store->statistics().reads, 5u);
}

TEST(ExpertStore, GivesUpWhatWasUsedLeast) {
  Fixture f(1, 1, 8, 3);
  ExpertStep step(*f.store);
  const auto run = [&](const std::vector<int32_t>& used) {
    step.begin(1);
    EXPECT_TRUE(work(step, 0, 8, used));
  };
  run({0});
  run({0});
  run({1});
  run({2});
  run({1});
  run({0});
  f.reader->take_units();
  run({3}); // 2 was used once
  run({0});
  run({1});
  EXPECT_THAT(f.reader->take_units(), ElementsAre(3));
  run({2}); // 3 was used once, and before
  run({0});
  run({1});
  EXPECT_THAT(f.reader->take_units(), ElementsAre(2));
}

TEST(ExpertStore, ForgetsWhatWasUsedLongAgo) {
  Fixture f(1, 1, 4, 2);
  ExpertStep step(*f.store);
  const auto run = [&](int32_t expert) {
    step.begin(1);
    EXPECT_TRUE(work(step, 0, 4, {expert}));
  };
  for (int i = 0; i < 20; ++i)
    run(0);
  for (int i = 0; i < 400; ++i)
    run(1);
  run(2);
  run(1);
  f.reader->take_units();
  run(2);
  EXPECT_THAT(f.reader->take_units(), IsEmpty());
  run(0);
  EXPECT_THAT(f.reader->take_units(), ElementsAre(0));
}

TEST(ExpertStore, ReadsTheOtherMatricesOfALayerAhead) {
  Fixture f(1, 3, 8, 24);
  ExpertStep step(*f.store);
  step.begin(1);
  step.open(0, std::vector<int32_t>{2, 3}, 1);
  EXPECT_THAT(f.reader->take_units(), ElementsAre(2, 3, 10, 11, 18, 19));
  for (uint32_t m = 0; m < 3; ++m)
    EXPECT_TRUE(work(step, m, 8, {2, 3}));
  EXPECT_THAT(f.reader->take_units(), IsEmpty());
  // They were asked for, not guessed.
  EXPECT_EQ(f.store->statistics().prefetch_hits, 0u);
  EXPECT_EQ(f.store->statistics().hits, 0u);
}

TEST(ExpertStore, ReadsWhatTheNextRouterNames) {
  Fixture f(2, 1, 8, 5);
  ExpertStep step(*f.store);
  step.begin(1);
  step.predicted(1) = {4, 5};
  EXPECT_TRUE(work(step, 0, 8, {0}));
  EXPECT_THAT(f.reader->take_units(), ElementsAre(0, 12, 13));
  EXPECT_TRUE(work(step, 1, 8, {5, 6}));
  EXPECT_THAT(f.reader->take_units(), ElementsAre(14));
  EXPECT_EQ(f.store->statistics().prefetch_hits, 1u);
  // The wrong guess is the first to go.
  step.begin(1);
  EXPECT_TRUE(work(step, 0, 8, {1, 2}));
  step.begin(1);
  EXPECT_TRUE(work(step, 0, 8, {0, 1, 2}));
  EXPECT_TRUE(work(step, 1, 8, {5, 6}));
  EXPECT_THAT(f.reader->take_units(), ElementsAre(1, 2));
}

TEST(ExpertStore, NeverReadsAheadInThePlaceOfWhatIsInUse) {
  Fixture f(2, 1, 8, 2);
  ExpertStep step(*f.store);
  step.begin(1);
  step.predicted(1) = {4, 5};
  ExpertTicket& ticket = step.open(0, std::vector<int32_t>{0, 1}, 1);
  EXPECT_NE(step.bytes(ticket, 0), nullptr);
  EXPECT_NE(step.bytes(ticket, 1), nullptr);
  EXPECT_THAT(f.reader->take_units(), ElementsAre(0, 1));
  EXPECT_TRUE(work(step, 0, 8, {0, 1}));
}

TEST(ExpertStore, AFailedReadFailsTheStepAndNoOther) {
  Fixture f(2, 2, 4, 2);
  ExpertStep step(*f.store), other(*f.store);
  f.reader->fail({2});
  step.begin(1);
  EXPECT_FALSE(work(step, 0, 4, {1, 2, 3}, 3));
  EXPECT_FALSE(work(step, 1, 4, {1, 2, 3}, 3));
  EXPECT_FALSE(work(step, 2, 4, {0}));
  const Status status = step.end();
  EXPECT_EQ(status.message(), "unit 2 cannot be read");
  other.begin(1);
  EXPECT_TRUE(work(other, 0, 4, {0, 1, 3}));
  EXPECT_TRUE(other.end().ok());
  f.reader->fail({});
  step.begin(1);
  EXPECT_TRUE(work(step, 0, 4, {1, 2, 3}));
  EXPECT_TRUE(work(step, 3, 4, {1, 2, 3}));
  EXPECT_TRUE(step.end().ok());
}

TEST(ExpertStore, TakesBackWhatASessionThatEndsHadInUse) {
  Fixture f(1, 1, 6, 2);
  {
    ExpertStep gone(*f.store);
    gone.begin(1);
    gone.open(0, std::vector<int32_t>{0, 1, 2}, 1); // both places, and one more in line
  }
  {
    ExpertStep gone(*f.store);
    gone.begin(1);
    gone.open(0, std::vector<int32_t>{-1, 99}, 1); // nothing that there is
  }
  ExpertStep step(*f.store);
  step.begin(1);
  EXPECT_TRUE(work(step, 0, 6, {3, 4, 5}));
  EXPECT_TRUE(step.end().ok());
}

TEST(ExpertStore, GivesPlacesBackWhenTheBudgetShrinks) {
  Fixture f(1, 1, 8, 8);
  ExpertStep step(*f.store);
  step.begin(1);
  EXPECT_TRUE(work(step, 0, 8, {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(f.store->limit_bytes(), 8 * kReadAlignment);
  f.store->set_limit(3 * kReadAlignment);
  EXPECT_EQ(f.store->limit_bytes(), 3 * kReadAlignment);
  f.reader->take_units();
  step.begin(1);
  EXPECT_TRUE(work(step, 0, 8, {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(f.reader->take_units().size(), 5u);
  f.store->set_limit(0);
  EXPECT_EQ(f.store->limit_bytes(), f.store->least_bytes());
}

/// One session whose workers take items from a cursor in ascending blocks, as the executor hands them out.
class Crew {
public:
  Crew(ExpertStore& store, unsigned threads, uint32_t experts) : step_(store), threads_(threads), experts_(experts) {}

  /// Every matrix of every layer on random experts; two matrices share a stage. Whether all bytes were right.
  bool run_step(ExpertStore& store, std::mt19937& random) {
    constexpr uint64_t kItems = 3;
    step_.begin(1);
    for (uint32_t m = 0; m < store.matrix_count(); m += 2) {
      std::set<int32_t> chosen;
      for (uint32_t n = 1 + random() % experts_; n > 0; --n)
        chosen.insert(static_cast<int32_t>(random() % experts_));
      const std::vector<int32_t> used(chosen.begin(), chosen.end());
      const uint64_t block = 1 + random() % 7, each = used.size() * kItems;
      std::atomic<uint64_t> cursor{0};
      auto worker = [&] {
        for (uint64_t begin; (begin = cursor.fetch_add(block)) < 2 * each;)
          for (uint64_t item = begin; item < std::min(begin + block, 2 * each); ++item) {
            const uint32_t matrix = m + (item >= each);
            ExpertTicket& ticket = step_.open(matrix, used, kItems);
            const uint64_t position = item % each / kItems;
            const uint8_t* bytes = step_.bytes(ticket, position);
            uint64_t value = UINT64_MAX;
            if (bytes)
              std::memcpy(&value, bytes, sizeof(value));
            if (bytes && value != (uint64_t{matrix} * experts_ + ticket.expert(position)) * 2 * kReadAlignment)
              wrong_ = true;
            step_.finish(ticket, position, 1);
          }
      };
      std::vector<std::thread> others;
      for (unsigned i = 1; i < threads_; ++i)
        others.emplace_back(worker);
      worker();
      for (std::thread& thread : others)
        thread.join();
    }
    return step_.end().ok();
  }
  bool wrong() const { return wrong_; }

private:
  ExpertStep step_;
  unsigned threads_;
  uint32_t experts_;
  std::atomic<bool> wrong_{false};
};

class TinyBudgets : public testing::TestWithParam<uint64_t> {};

TEST_P(TinyBudgets, ServeManyThreadsOfManySessions) {
  constexpr uint32_t kExperts = 6;
  Fixture f(2, 2, kExperts, GetParam());
  std::vector<std::thread> sessions;
  std::atomic<unsigned> failed{0}, wrong{0};
  for (unsigned s = 0; s < 3; ++s)
    sessions.emplace_back([&, s] {
      std::mt19937 random(s);
      Crew crew(*f.store, 3, kExperts);
      for (int i = 0; i < 60; ++i)
        failed += !crew.run_step(*f.store, random);
      wrong += crew.wrong();
    });
  for (std::thread& session : sessions)
    session.join();
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(wrong, 0u);
}

TEST_P(TinyBudgets, SurviveReadsThatFailNowAndThen) {
  constexpr uint32_t kExperts = 6;
  Fixture f(2, 2, kExperts, GetParam());
  f.reader->fail({3, 9, 17});
  std::vector<std::thread> sessions;
  std::atomic<unsigned> failed{0}, wrong{0};
  for (unsigned s = 0; s < 2; ++s)
    sessions.emplace_back([&, s] {
      std::mt19937 random(s);
      Crew crew(*f.store, 2, kExperts);
      for (int i = 0; i < 60; ++i)
        failed += !crew.run_step(*f.store, random);
      wrong += crew.wrong();
    });
  for (std::thread& session : sessions)
    session.join();
  EXPECT_GT(failed, 0u);
  EXPECT_EQ(wrong, 0u);
  f.reader->fail({});
  std::mt19937 random(9);
  Crew crew(*f.store, 2, kExperts);
  EXPECT_TRUE(crew.run_step(*f.store, random));
}

INSTANTIATE_TEST_SUITE_P(Places, TinyBudgets, testing::Values(0, 3, 5, 12, 24));

} // namespace
} // namespace cortiq::runtime
