#include "runtime/session/token_origins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TokenOrigins, WhatRunsAgainIsCutWhereTurnsAre) {
  TokenOrigins origins;
  origins.note(0, 10, Origin::kPrompt);
  for (uint64_t i = 10; i < 14; ++i)
    origins.note(i, 1, Origin::kGenerated);
  origins.note(14, 3, Origin::kPrompt);
  EXPECT_THAT(origins.turns(17), ElementsAre(10, 14));
  EXPECT_THAT(origins.turns(12), ElementsAre(10));
  EXPECT_THAT(origins.turns(10), IsEmpty());
  const auto run = origins.run(3, 100);
  EXPECT_EQ(run.origin, Origin::kPrompt);
  EXPECT_EQ(run.count, 7u);
  EXPECT_EQ(origins.run(3, 5).count, 5u);
  EXPECT_EQ(origins.run(11, 100).origin, Origin::kGenerated);
  EXPECT_EQ(origins.run(11, 100).count, 3u);
  // Running some of them again changes nothing behind them.
  origins.note(0, 10, Origin::kPrompt);
  EXPECT_THAT(origins.turns(17), ElementsAre(10, 14));
}

TEST(TokenOrigins, TurnsSayItAll) {
  TokenOrigins origins;
  origins.note(0, 2, Origin::kGenerated);
  origins.note(2, 5, Origin::kPrompt);
  origins.note(7, 4, Origin::kGenerated);
  for (const uint64_t count : {1u, 2u, 3u, 7u, 8u, 11u}) {
    TokenOrigins other;
    other.note(0, 20, Origin::kGenerated); // of what it held before nothing is left
    other.adopt(origins.turns(11), count);
    EXPECT_EQ(other.turns(count), origins.turns(count));
    EXPECT_EQ(other.run(count, 1).origin, Origin::kPrompt);
  }
}

} // namespace
} // namespace cortiq::runtime
