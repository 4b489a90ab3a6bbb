#include "tools/cortiq-serve/http/http_library.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "formats/quote.h"

namespace cortiq::serve {
namespace {

constexpr size_t kRequestsAConnection = 10000;

} // namespace

void HttpLibrary::let_wait(unsigned connections) {
  ::listen(svr_sock_, static_cast<int>(connections));
}

void HttpLibrary::shut_connections() {
  const std::lock_guard lock(mutex_);
  for (const int socket : open_)
    shutdown(socket, SHUT_RDWR);
}

bool HttpLibrary::process_and_close_socket(socket_t socket) {
  {
    const std::lock_guard lock(mutex_);
    open_.insert(socket);
  }
  try {
    Connection connection(socket, limits_);
    serve(connection);
    if (connection.last())
      connection.linger();
  } catch (const std::exception&) { // of memory, before a handler was reached: this connection ends, others go on
  }
  const std::lock_guard lock(mutex_);
  open_.erase(socket);
  shutdown(socket, SHUT_RDWR);
  close(socket);
  return true;
}

void HttpLibrary::serve(Connection& connection) {
  const auto go_on = [&] { return svr_sock_ != INVALID_SOCKET; };
  // Parts of an answer are none of our affair, and the library's arithmetic on them need not be trusted.
  const auto no_ranges = [](httplib::Request& request) {
    request.ranges.clear();
    request.headers.erase("Range");
  };
  for (size_t left = kRequestsAConnection; left != 0 && connection.await_request(go_on); --left) {
    bool closed = false;
    if (!process_request(connection, left == 1, closed, no_ranges) || closed || connection.last())
      return;
  }
}

std::string why_not_listen(const std::string& host, int port) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list); code != 0)
    return formats::quote(host) + " is no address that is known here: " + gai_strerror(code);
  int error = 0;
  for (const addrinfo* at = list; at; at = at->ai_next) {
    const int probe = ::socket(at->ai_family, at->ai_socktype, at->ai_protocol);
    const int yes = 1;
    if (probe >= 0)
      setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (probe < 0 || ::bind(probe, at->ai_addr, at->ai_addrlen) != 0 || ::listen(probe, 1) != 0)
      error = errno;
    if (probe >= 0)
      close(probe);
  }
  freeaddrinfo(list);
  switch (error) {
  case EADDRINUSE:
    return "another program listens there already; give another --port";
  case EADDRNOTAVAIL:
    return "this machine has no such address; --host 0.0.0.0 listens on all that it has";
  case EACCES:
    return "ports below 1024 are for the administrator; give another --port";
  default:
    return error == 0 ? "it is free by now; try again" : std::strerror(error);
  }
}

} // namespace cortiq::serve
