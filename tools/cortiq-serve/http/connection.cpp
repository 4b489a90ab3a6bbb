#include "tools/cortiq-serve/http/connection.h"

#include <algorithm>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace cortiq::serve {
namespace {

using namespace std::chrono_literals;

constexpr size_t kRead = 16u << 10;
/// How long, and for how much, a client that was refused may go on sending before it reads the answer.
constexpr auto kLinger = 2s;
constexpr size_t kLingerBytes = 64u << 20;

thread_local Connection* current = nullptr;

/// Whether `events` came within `patience`.
bool wait_for(int socket, short events, std::chrono::milliseconds patience) {
  pollfd state = {socket, events, 0};
  return poll(&state, 1, static_cast<int>(std::max<int64_t>(0, patience.count()))) > 0;
}

std::chrono::milliseconds until(std::chrono::steady_clock::time_point when) {
  return std::chrono::ceil<std::chrono::milliseconds>(when - std::chrono::steady_clock::now());
}

void describe(const sockaddr_storage& address, std::string& ip, int& port) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    port = ntohs(v6.sin6_port);
  }
  ip = text;
}

} // namespace

Connection::Connection(int socket, const ConnectionLimits& limits) : socket_(socket), limits_(limits) {
  current = this;
}

Connection::~Connection() {
  current = nullptr;
}

Connection* Connection::of_this_thread() {
  return current;
}

bool Connection::await_request(const std::function<bool()>& go_on) {
  in_head_ = true;
  head_ = line_ = 0;
  body_ = 0;
  const auto patience = Clock::now() + limits_.idle;
  constexpr auto kLook = 50ms; // whether the server ends
  while (at_ == buffer_.size() && !wait_for(socket_, POLLIN, kLook))
    if (!go_on() || Clock::now() >= patience)
      return false;
  begun_ = Clock::now();
  return go_on();
}

void Connection::linger() {
  shutdown(socket_, SHUT_WR);
  const auto end = Clock::now() + kLinger;
  char waste[kRead];
  for (size_t taken = 0; taken < kLingerBytes && wait_for(socket_, POLLIN, until(end));) {
    const ssize_t count = recv(socket_, waste, sizeof waste, 0);
    if (count <= 0)
      return;
    taken += static_cast<size_t>(count);
  }
}

bool Connection::gone() const {
  pollfd state = {socket_, POLLRDHUP, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

double Connection::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begun_).count();
}

bool Connection::is_readable() const {
  return at_ < buffer_.size() || wait_for(socket_, POLLIN, limits_.still);
}

ssize_t Connection::read(char* out, size_t size) {
  if (failed_ || size == 0)
    return failed_ ? -1 : 0;
  if (at_ == buffer_.size() && !fill())
    return failed_ ? -1 : 0;
  // The library reads lines letter by letter, and the rest in larger parts.
  const size_t count = in_head_ ? 1 : std::min(size, buffer_.size() - at_);
  std::copy_n(buffer_.data() + at_, count, out);
  at_ += count;
  if ((in_head_ || size == 1) && !this->count(*out))
    return -1;
  return static_cast<ssize_t>(count);
}

/// Bounds the head as a whole, and later the lines between the parts of a body.
bool Connection::count(char byte) {
  ++line_;
  if (in_head_ && ++head_ > limits_.head_bytes)
    return refuse("431 Request Header Fields Too Large", "the head of the request is larger than 64 KiB");
  if (line_ > limits_.head_bytes)
    return refuse("400 Bad Request", "a line of the request is larger than 64 KiB");
  if (byte != '\n')
    return true;
  if (in_head_ && line_ == 2 && at_ >= 2 && buffer_[at_ - 2] == '\r') {
    in_head_ = false;
    body_begun_ = Clock::now();
    body_ = buffer_.size() - at_;
  }
  line_ = 0;
  return true;
}

/// More bytes into the buffer. False: the client sends no more, or was refused.
bool Connection::fill() {
  const auto now = Clock::now();
  auto latest = now + limits_.still;
  if (in_head_)
    latest = std::min<Clock::time_point>(latest, begun_ + limits_.head);
  else if (const auto spent = now - body_begun_; spent > limits_.still)
    if (static_cast<double>(body_) <
        static_cast<double>(limits_.slowest) * std::chrono::duration<double>(spent - limits_.still).count())
      return refuse("408 Request Timeout", "the request comes too slowly");
  if (!wait_for(socket_, POLLIN, until(latest)))
    return refuse("408 Request Timeout", "the request did not come to its end in time");
  // A head's last bytes stay: its end is told from two of them.
  const size_t keep = std::min<size_t>(buffer_.size(), 1);
  buffer_.erase(0, buffer_.size() - keep);
  at_ = keep;
  buffer_.resize(keep + kRead);
  const ssize_t count = recv(socket_, buffer_.data() + keep, kRead, 0);
  buffer_.resize(keep + static_cast<size_t>(std::max<ssize_t>(0, count)));
  if (count <= 0)
    return false;
  if (!in_head_)
    body_ += static_cast<uint64_t>(count);
  return true;
}

/// Answers in the library's place, which only learns that reading failed.
bool Connection::refuse(const char* status, const char* message) {
  const std::string body = std::string(R"({"error":{"message":")") + message +
                           R"(","type":"invalid_request_error","param":null,"code":null}})";
  const std::string answer =
      std::string("HTTP/1.1 ") + status +
      "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  static_cast<void>(write(answer.data(), answer.size()));
  failed_ = true;
  last_ = true;
  return false;
}

ssize_t Connection::write(const char* data, size_t size) {
  if (failed_) // it was answered
    return -1;
  for (size_t done = 0; done < size;) {
    if (!wait_for(socket_, POLLOUT, limits_.still)) {
      failed_ = true;
      return -1;
    }
    const ssize_t count = send(socket_, data + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
      continue;
    if (count <= 0) {
      failed_ = true;
      return -1;
    }
    done += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(size);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    describe(address, ip, port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    describe(address, ip, port);
}

} // namespace cortiq::serve
