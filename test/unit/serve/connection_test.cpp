#include "tools/cortiq-serve/http/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace cortiq::serve {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A connection and its client.
class ConnectionTest : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  void send(std::string_view text) { ASSERT_EQ(write(ends_[1], text.data(), text.size()), ssize_t(text.size())); }
  std::string received() {
    char text[4096];
    const ssize_t count = recv(ends_[1], text, sizeof text, MSG_DONTWAIT);
    return count > 0 ? std::string(text, static_cast<size_t>(count)) : "";
  }
  /// A head as the library reads it.
  static std::string head(Connection& connection) {
    std::string out;
    char byte;
    while (!out.ends_with("\r\n\r\n") && connection.read(&byte, 1) == 1)
      out += byte;
    return out;
  }
  static bool always() { return true; }

  int ends_[2] = {-1, -1};
};

TEST_F(ConnectionTest, WhatComesBehindARequestIsTheNextOne) {
  Connection connection(ends_[0], {});
  EXPECT_EQ(Connection::of_this_thread(), &connection);
  send("GET /1 HTTP/1.1\r\n\r\nbodyGET /2 HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(connection.await_request(always));
  EXPECT_EQ(head(connection), "GET /1 HTTP/1.1\r\n\r\n");
  char body[4];
  ASSERT_EQ(connection.read(body, 4), 4);
  ASSERT_TRUE(connection.await_request(always));
  EXPECT_EQ(head(connection), "GET /2 HTTP/1.1\r\n\r\n");
}

TEST_F(ConnectionTest, AnEndlessHeadIsRefused) {
  ConnectionLimits limits;
  limits.head_bytes = 1000;
  for (const char* part : {"A: b\r\n", "aaaaaaaa"}) {
    Connection connection(ends_[0], limits);
    std::string much;
    for (int i = 0; i < 400; ++i)
      much += part;
    send(much);
    ASSERT_TRUE(connection.await_request(always));
    EXPECT_LE(head(connection).size(), 1000u);
    EXPECT_THAT(received(), AllOf(StartsWith("HTTP/1.1 431 "), HasSubstr("Connection: close"), HasSubstr("error")));
    EXPECT_TRUE(connection.last());
    EXPECT_EQ(connection.write("x", 1), -1); // nothing of the library's behind it
    connection.linger();
    TearDown();
    SetUp();
  }
}

TEST_F(ConnectionTest, AHeadBehindAnotherHasItsOwnBound) {
  ConnectionLimits limits;
  limits.head_bytes = 100;
  Connection connection(ends_[0], limits);
  for (int i = 0; i < 20; ++i) {
    send("GET / HTTP/1.1\r\nHost: someone\r\n\r\n");
    ASSERT_TRUE(connection.await_request(always));
    EXPECT_EQ(head(connection).size(), 33u);
  }
}

TEST_F(ConnectionTest, AHeadInDripsIsRefused) {
  ConnectionLimits limits;
  limits.head = 1s;
  Connection connection(ends_[0], limits);
  std::thread client([&] {
    for (int i = 0; i < 15; ++i) {
      send("a");
      std::this_thread::sleep_for(100ms);
    }
  });
  ASSERT_TRUE(connection.await_request(always));
  head(connection);
  EXPECT_THAT(received(), StartsWith("HTTP/1.1 408 "));
  client.join();
}

TEST_F(ConnectionTest, ABodyThatStandsStillOrCreepsIsRefused) {
  ConnectionLimits limits;
  limits.still = 1s;
  limits.slowest = 1000;
  for (const bool creeps : {false, true}) {
    Connection connection(ends_[0], limits);
    send("POST / HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(connection.await_request(always));
    head(connection);
    std::thread client([&] {
      for (int i = 0; creeps && i < 30 && received().empty(); ++i) {
        send("a");
        std::this_thread::sleep_for(100ms);
      }
    });
    const auto start = std::chrono::steady_clock::now();
    char byte[16];
    while (connection.read(byte, sizeof byte) > 0) {
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
    EXPECT_TRUE(connection.last());
    client.join();
    TearDown();
    SetUp();
  }
}

TEST_F(ConnectionTest, KnowsWhenTheClientLeft) {
  Connection connection(ends_[0], {});
  EXPECT_FALSE(connection.gone());
  shutdown(ends_[1], SHUT_WR);
  EXPECT_TRUE(connection.gone());
  EXPECT_FALSE(connection.is_writable());
}

TEST_F(ConnectionTest, WaitsNoLongerThanTheServerLives) {
  Connection connection(ends_[0], {});
  EXPECT_FALSE(connection.await_request([] { return false; }));
}

TEST_F(ConnectionTest, AReaderThatStandsStillEndsTheAnswer) {
  ConnectionLimits limits;
  limits.still = 1s;
  Connection connection(ends_[0], limits);
  const std::string much(16 << 20, 'x');
  EXPECT_EQ(connection.write(much.data(), much.size()), -1);
}

} // namespace
} // namespace cortiq::serve
