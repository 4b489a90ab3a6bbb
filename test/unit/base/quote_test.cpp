#include "formats/quote.h"

#include <gtest/gtest.h>
#include <vector>

namespace cortiq::formats {
namespace {

TEST(Quote, EscapesWhatWouldBreakALine) {
  EXPECT_EQ(quote("a b"), "'a b'");
  EXPECT_EQ(quote("a\nb\x7f"), "'a\\x0ab\\x7f'");
  EXPECT_EQ(quote("\xff\xc3\xa9"), "'\\xff\xc3\xa9'");
  EXPECT_EQ(quote("\xc2\x9b"), "'\\xc2\\x9b'") << "C1 controls are controls";
  EXPECT_EQ(quote(std::string_view("\0", 1)), "'\\x00'");
}

TEST(Quote, CutsLongTexts) {
  const std::string cut = quote(std::string(100000, 'x'));
  EXPECT_LT(cut.size(), 300u);
  EXPECT_TRUE(cut.ends_with("…'"));
}

TEST(IsUtf8, FollowsTheUnicodeTable) {
  for (const char* good :
       {"", "abc", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xe4\xb8", "\xc3\x28"})
    EXPECT_FALSE(is_utf8(bad)) << quote(bad);
}

TEST(Hex64, HasSixteenDigits) {
  EXPECT_EQ(hex64(0), "0000000000000000");
  EXPECT_EQ(hex64(0xfedcba9876543210), "fedcba9876543210");
}

TEST(ShapeText, ListsDimensions) {
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text(std::vector<uint64_t>{128, 64}), "[128, 64]");
}

} // namespace
} // namespace cortiq::formats
