#include "tools/cortiq-serve/http/peer_socket.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>

namespace cortiq::serve {
namespace {

/// Calls `see` with each descriptor of this process until it returns true.
template <class See>
void each_descriptor(See see) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr)
    if (entry->d_name[0] != '.' && see(std::atoi(entry->d_name)))
      return;
}

bool is_peer(int socket, const std::string& address, int port) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0)
    return false;
  char text[INET6_ADDRSTRLEN] = {};
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    return ntohs(v4.sin_port) == port && inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text) && address == text;
  }
  if (peer.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
    return ntohs(v6.sin6_port) == port && inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text) && address == text;
  }
  return false;
}

} // namespace

PeerSocket::PeerSocket(const std::string& address, int port) {
  each_descriptor([&](int socket) {
    if (!is_peer(socket, address, port))
      return false;
    socket_ = socket;
    return true;
  });
}

bool PeerSocket::closed() const {
  if (socket_ < 0)
    return false;
  pollfd state = {socket_, POLLRDHUP, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void shut_connections() {
  each_descriptor([](int socket) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
      shutdown(socket, SHUT_RDWR);
    return false;
  });
}

} // namespace cortiq::serve
