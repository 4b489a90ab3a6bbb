#include "tools/cortiq-serve/http/request_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cortiq::serve {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

/// Whatever stands in the pipe.
std::string drain(int end) {
  std::string out;
  char block[4096];
  for (ssize_t read = 0; (read = ::read(end, block, sizeof block)) > 0;)
    out.append(block, static_cast<size_t>(read));
  return out;
}

TEST(RequestLogTest, NeverWaitsForAPipeThatNobodyReads) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0); // of the reader alone
  RequestLog log(ends[1]);
  for (int i = 0; i < 5000; ++i) // more than the pipe holds
    log.write("a line of the log, as long as such lines are: 127.0.0.1 GET / 200");
  EXPECT_THAT(drain(ends[0]), EndsWith("200\n"));
  log.write("after");
  const std::string next = drain(ends[0]);
  EXPECT_THAT(next, HasSubstr("lines of this log were left out"));
  EXPECT_THAT(next, EndsWith("\nafter\n"));
  close(ends[0]);
  close(ends[1]);
}

TEST(RequestLogTest, LongLinesAreCut) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  RequestLog log(ends[1]);
  log.write(std::string(10'000, 'x'));
  EXPECT_EQ(drain(ends[0]), std::string(4095, 'x') + "\n");
  close(ends[0]);
  close(ends[1]);
}

} // namespace
} // namespace cortiq::serve
