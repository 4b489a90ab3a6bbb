#include "tools/cortiq-serve/engine/fair_queue.h"

#include <gtest/gtest.h>

namespace cortiq::serve {
namespace {

std::shared_ptr<Job> job(const std::string& client, uint32_t id) {
  Request request;
  request.client = client;
  request.prompt = {id};
  return std::make_shared<Job>(std::move(request), Job::Clock::now() + std::chrono::hours(1));
}

TEST(FairQueue, ClientsTakeTurnsAndEachKeepsItsOrder) {
  FairQueue queue;
  for (const uint32_t id : {1u, 2u, 3u})
    queue.push(job("a", id));
  queue.push(job("b", 10));
  queue.push(job("c", 20));
  queue.push(job("b", 11));
  EXPECT_EQ(queue.size(), 6u);
  std::vector<uint32_t> order;
  while (const auto next = queue.pop())
    order.push_back(next->request.prompt[0]);
  EXPECT_EQ(order, (std::vector<uint32_t>{1, 10, 20, 2, 11, 3}));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueue, GivesUpWhatNobodyWaitsForAnyMore) {
  FairQueue queue;
  const auto left = job("a", 1), stays = job("a", 2), alone = job("b", 3);
  for (const auto& one : {left, stays, alone})
    queue.push(one);
  left->cancel();
  alone->cancel();
  EXPECT_EQ(queue.take_cancelled().size(), 2u);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.pop(), stays);
  EXPECT_EQ(queue.pop(), nullptr);
}

} // namespace
} // namespace cortiq::serve
