// What options of cortiq-run come to.

#include <vector>

#include <gtest/gtest.h>

#include "runtime/cli/run_options.h"
#include "runtime/memory/placement.h"

namespace cortiq::runtime {
namespace {

Placement placement(std::vector<const char*> words) {
  cli::RunOptions options;
  words.insert(words.begin(), {"cortiq-run", "m.cqa", "--tokens", "1"});
  EXPECT_TRUE(cli::parse_run_options(static_cast<int>(words.size()), words.data(), "cortiq-run", options).run);
  return placement_of(options.pages, options.numa);
}

TEST(RunOptions, MemoryNodesCountUnlessToldOtherwise) {
  EXPECT_TRUE(placement({}).numa);
  EXPECT_TRUE(placement({"--numa", "auto"}).numa);
  EXPECT_FALSE(placement({"--numa", "off"}).numa);
  EXPECT_FALSE(placement({}).large_pages);
  EXPECT_TRUE(placement({"--pages", "large", "--numa", "off"}).large_pages);
}

TEST(RunOptions, OtherWordsAreRefused) {
  const char* const words[] = {"cortiq-run", "m.cqa", "--tokens", "1", "--numa", "node0"};
  cli::RunOptions options;
  const cli::ParseOutcome outcome =
      cli::parse_run_options(static_cast<int>(std::size(words)), words, "cortiq-run", options);
  EXPECT_FALSE(outcome.run);
  EXPECT_EQ(outcome.exit, 2);
}

} // namespace
} // namespace cortiq::runtime
