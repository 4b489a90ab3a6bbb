#pragma once

// Connections as the system sees them: whether the client of a request is still there while nothing is written to it,
// and their end.

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

/// Ends every connection of this process over TCP: who reads or writes one finds it closed.
void shut_connections();

} // namespace cortiq::serve
