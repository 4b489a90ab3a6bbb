#pragma once

// The HTTP library's server over our own connections.

#include <functional>
#include <httplib.h>
#include <mutex>
#include <set>
#include <string>

#include "tools/cortiq-serve/http/connection.h"

namespace cortiq::serve {

class HttpLibrary : public httplib::Server {
public:
  explicit HttpLibrary(const ConnectionLimits& limits) : limits_(limits) {}

  /// The library lets so few connections wait to be accepted that a burst of clients finds some reset.
  void let_wait(unsigned connections);
  /// Ends every connection: who reads or writes one finds it closed.
  void shut_connections();

private:
  bool process_and_close_socket(socket_t socket) override;
  void serve(Connection& connection);

  const ConnectionLimits limits_;
  std::mutex mutex_;
  std::set<int> open_;
};

/// Why nothing can listen at an address, for people.
std::string why_not_listen(const std::string& host, int port);

} // namespace cortiq::serve
