#pragma once

// Whether the client of a request is still there, asked while nothing is written to it.

#include <cstdint>
#include <string>

namespace cortiq::serve {

/// The connection of this process with a client at `address` and `port`. The HTTP library hands out no socket, so it is
/// looked up among the process's own.
class PeerSocket {
public:
  PeerSocket(const std::string& address, int port);
  /// True once the client has closed its side. False when the connection was not found.
  bool closed() const;

private:
  int socket_ = -1;
};

} // namespace cortiq::serve
