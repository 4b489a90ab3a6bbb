#include "tools/cortiq-serve/http/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace cortiq::serve {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

std::vector<std::shared_ptr<Job>> jobs(size_t count) {
  std::vector<std::shared_ptr<Job>> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(std::make_shared<Job>(Request{}, Job::Clock::now() + 1h));
  return out;
}

Piece text(const char* words) {
  Piece out;
  out.text = words;
  return out;
}

Finish stop() {
  Finish out;
  out.outcome = Outcome::kStop;
  return out;
}

TEST(Pieces, ComeFromWhicheverJobHasSome) {
  const auto all = jobs(3);
  Pieces pieces(all);
  Pieces::News none;
  EXPECT_FALSE(pieces.wait(20ms, none));
  std::thread worker([&] {
    std::this_thread::sleep_for(30ms);
    all[2]->push(text("c"));
    all[0]->push(text("a"));
    for (const auto& job : all)
      job->finish(stop());
  });
  std::vector<std::string> said(3);
  std::vector<size_t> ended;
  while (!pieces.ended()) {
    Pieces::News news;
    pieces.wait(1s, news);
    for (const auto& [job, piece] : news.pieces)
      said[job] += piece.text;
    for (const auto& [job, finish] : news.finishes)
      ended.push_back(job);
  }
  worker.join();
  EXPECT_THAT(said, ElementsAre("a", "", "c"));
  EXPECT_THAT(ended, ::testing::UnorderedElementsAre(0u, 1u, 2u));
  EXPECT_EQ(pieces.finishes().size(), 3u);
}

TEST(Pieces, GoingAwayCancelsWhatIsNotFinished) {
  const auto all = jobs(2);
  {
    Pieces pieces(all);
    all[0]->finish(stop());
    Pieces::News news;
    ASSERT_TRUE(pieces.wait(1s, news));
  }
  EXPECT_FALSE(all[0]->cancelled());
  EXPECT_TRUE(all[1]->cancelled());
}

} // namespace
} // namespace cortiq::serve
