#pragma once

// One client's connection as the HTTP library reads and writes it: with bounds on the head of a request and on the time
// that it takes, with what came behind a request kept for the next one, and with a look at whether the client is still
// there.

#include <chrono>
#include <cstdint>
#include <functional>
#include <httplib.h>
#include <string>
#include <string_view>

namespace cortiq::serve {

struct ConnectionLimits {
  size_t head_bytes = 64u << 10;  ///< of a request's head, and of a line between the parts of its body
  std::chrono::seconds idle{5};   ///< between requests
  std::chrono::seconds head{30};  ///< from a head's first byte to its last
  std::chrono::seconds still{30}; ///< nothing of a body comes, or nothing of an answer is taken
  uint64_t slowest = 1024;        ///< bytes of a body a second, once `still` is over
};

/// For the one thread that serves it. The socket is the caller's.
class Connection : public httplib::Stream {
public:
  Connection(int socket, const ConnectionLimits& limits);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The one that this thread serves; null: none.
  static Connection* of_this_thread();

  /// Waits for a request as long as `go_on` says so. False: none comes.
  bool await_request(const std::function<bool()>& go_on);
  /// Serves no further request, and lets the client read its answer though it may still be sending.
  void close_after() { last_ = true; }
  bool last() const { return last_; }
  void linger();
  /// Whether the client has closed its side.
  bool gone() const;
  /// Since the request's first byte.
  double seconds() const;

  bool is_readable() const override;
  bool is_writable() const override { return !gone(); }
  ssize_t read(char* out, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  int socket() const override { return socket_; }

private:
  using Clock = std::chrono::steady_clock;

  bool fill();
  bool count(char byte);
  bool refuse(const char* status, const char* message);

  const int socket_;
  const ConnectionLimits limits_;
  std::string buffer_;
  size_t at_ = 0; ///< in the buffer
  bool in_head_ = true, last_ = false, failed_ = false;
  size_t head_ = 0, line_ = 0; ///< bytes of the head, and since the last line break
  uint64_t body_ = 0;          ///< bytes received behind the head
  Clock::time_point begun_, body_begun_;
};

} // namespace cortiq::serve
