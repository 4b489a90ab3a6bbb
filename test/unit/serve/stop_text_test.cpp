#include "tools/cortiq-serve/engine/stop_text.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace cortiq::serve {
namespace {

/// What a reader of all pieces gets.
std::string joined(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopText text(stops);
  std::string out;
  for (const std::string& piece : pieces)
    out += text.push(piece);
  return out + text.flush();
}

std::vector<std::string> letters(const std::string& text) {
  std::vector<std::string> out;
  for (const char letter : text)
    out.emplace_back(1, letter);
  return out;
}

TEST(StopText, EndsBeforeTheEarliestMatch) {
  EXPECT_EQ(joined({"abd"}, letters("abcabd")), "abc");
  EXPECT_EQ(joined({"bd", "abd"}, letters("abcabd")), "abc");
  EXPECT_EQ(joined({"abdX"}, letters("abcabd")), "abcabd");
  EXPECT_EQ(joined({"abcabd"}, {"abcabd"}), "");
  EXPECT_EQ(joined({"a"}, {"abcabd"}), "");
  EXPECT_EQ(joined({}, {"abc", "abd"}), "abcabd");
  EXPECT_EQ(joined({"\xC3\xA9"}, {"caf\xC3\xA9 au lait"}), "caf");
}

TEST(StopText, HoldsBackOnlyWhatMayBecomeAStop) {
  StopText text({"stop"});
  EXPECT_EQ(text.push("do st"), "do ");
  EXPECT_EQ(text.push("ay"), "stay");
  EXPECT_EQ(text.push(" s"), " ");
  EXPECT_FALSE(text.stopped());
  EXPECT_EQ(text.push("top and more"), "");
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(text.push("even more"), "");
  EXPECT_EQ(text.flush(), "");
}

TEST(StopText, ALaterMatchWaitsForAnEarlierOneThatMayStillCome) {
  StopText text({"bd", "abdX"});
  EXPECT_EQ(text.push("abd"), "");
  EXPECT_EQ(text.push("X"), "");
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(joined({"bd", "abdX"}, letters("abdY")), "a");
  EXPECT_EQ(joined({"bd", "abdX"}, letters("abd")), "a");
}

TEST(StopText, CutsDoNotMatter) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const auto word = [&](size_t most) {
      std::string out;
      for (size_t i = 0, n = 1 + random() % most; i < n; ++i)
        out += static_cast<char>('a' + random() % 2);
      return out;
    };
    const std::string text = word(12);
    const std::vector<std::string> stops = {word(4), word(4)};
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      pieces.push_back(text.substr(at, 1 + random() % 4));
      at += pieces.back().size();
    }
    const size_t end = std::min({text.find(stops[0]), text.find(stops[1]), text.size()});
    ASSERT_EQ(joined(stops, pieces), text.substr(0, end)) << text << " " << stops[0] << " " << stops[1];
  }
}

} // namespace
} // namespace cortiq::serve
