#include "runtime/executor/weights_ahead.h"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace cortiq::runtime {
namespace {

/// Items that read a piece of `weights` each; a call without weights does not know what it reads.
class ReadingCall final : public Call {
public:
  ReadingCall(uint64_t items, std::span<const uint8_t> weights) : items_(items), weights_(weights) {}
  CallInfo info() const override { return {"reading", 0, 0, weights_.size()}; }
  uint64_t items(const StepShape&) const override { return items_; }
  void run(const StepContext&, const StepShape&, uint64_t, uint64_t, uint8_t*) const override {}
  std::span<const uint8_t> weights_of(const StepShape&, uint64_t begin, uint64_t end) const override {
    const uint64_t each = weights_.size() / items_;
    return weights_.subspan(begin * each, (end - begin) * each);
  }

private:
  uint64_t items_;
  std::span<const uint8_t> weights_;
};

class WeightsAheadTest : public testing::Test {
protected:
  /// A stage of calls, each of items and bytes; the weights of all follow each other.
  Stage& add(std::vector<std::pair<uint64_t, uint64_t>> calls) {
    Stage& stage = program_.stages.emplace_back();
    for (const auto& [items, bytes] : calls) {
      stage.calls.push_back(std::make_unique<ReadingCall>(items, std::span(bytes_).subspan(used_, bytes)));
      used_ += bytes;
    }
    return stage;
  }
  /// First byte and number of bytes, by the place in all weights; -1 for nothing.
  static constexpr int64_t kNothing = -1;
  std::pair<int64_t, uint64_t> of(const WeightsAhead& ahead, uint64_t stage, unsigned worker) const {
    const std::span<const uint8_t> weights = ahead.of(stage, worker);
    return {weights.empty() ? kNothing : weights.data() - bytes_.data(), weights.size()};
  }
  using Place = std::pair<int64_t, uint64_t>;

  ResolvedProgram program_;
  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(4 << 20);
  uint64_t used_ = 0;
};

TEST_F(WeightsAheadTest, SharesOfTheNextStageThatReadsWeights) {
  add({{8, 800}});          // from 0
  add({{4, 0}});            // attention, say
  add({{1, 50}});           // of one item: others wait while it runs
  add({{2, 200}, {2, 40}}); // from 850 and 1050
  const WeightsAhead ahead(program_, 2);
  for (const uint64_t stage : {0, 1, 2}) {
    EXPECT_EQ(of(ahead, stage, 0), Place(850, 200)) << stage;
    EXPECT_EQ(of(ahead, stage, 1), Place(1050, 40)) << stage;
  }
  for (const uint64_t stage : {3, 4}) { // the next step's, and what waits between steps
    EXPECT_EQ(of(ahead, stage, 0), Place(0, 400)) << stage;
    EXPECT_EQ(of(ahead, stage, 1), Place(400, 400)) << stage;
  }
}

TEST_F(WeightsAheadTest, AShareAcrossCallsBeginsInTheFirst) {
  add({{1, 10}, {5, 500}});
  const WeightsAhead ahead(program_, 3);
  EXPECT_EQ(of(ahead, 0, 0), Place(0, 10));
  EXPECT_EQ(of(ahead, 0, 1), Place(110, 200));
  EXPECT_EQ(of(ahead, 0, 2), Place(310, 200));
}

TEST_F(WeightsAheadTest, NoMoreThanAPartOfACache) {
  add({{4, 4 << 20}});
  const WeightsAhead ahead(program_, 2);
  EXPECT_EQ(of(ahead, 0, 1), Place(2 << 20, 128 << 10));
}

TEST_F(WeightsAheadTest, StagesThatMayNotRunAreLeftOut) {
  add({{2, 200}});
  add({{2, 200}}).draft = true;
  add({{2, 200}}).points.resize(1);
  const WeightsAhead ahead(program_, 2);
  for (uint64_t stage = 0; stage <= 3; ++stage)
    EXPECT_EQ(of(ahead, stage, 1), Place(100, 100)) << stage;
}

TEST_F(WeightsAheadTest, NothingWithoutWeights) {
  EXPECT_EQ(of(WeightsAhead(program_, 2), 0, 1), Place(kNothing, 0));
  EXPECT_EQ(of(WeightsAhead(), 7, 3), Place(kNothing, 0));
  add({{4, 0}});
  EXPECT_EQ(of(WeightsAhead(program_, 2), 0, 1), Place(kNothing, 0));
}

TEST_F(WeightsAheadTest, AskingEnds) {
  AskAhead ask(std::span(bytes_).first(300));
  EXPECT_TRUE(ask.more());
  EXPECT_TRUE(ask.more());
  EXPECT_TRUE(ask.more()); // the rest of it
  EXPECT_FALSE(ask.more());
  EXPECT_FALSE(AskAhead({}).more());
}

} // namespace
} // namespace cortiq::runtime
