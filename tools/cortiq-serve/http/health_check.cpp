#include "tools/cortiq-serve/http/health_check.h"

#include <string>

#include "tools/cortiq-serve/http/http_library.h"

namespace cortiq::serve {

Status check_health(int port) {
  httplib::Client client("127.0.0.1", port);
  client.set_connection_timeout(3);
  client.set_read_timeout(3);
  const httplib::Result answer = client.Get("/healthz");
  const std::string where = "port " + std::to_string(port);
  if (!answer)
    return io_error("no server answers at " + where + " of this machine: " + httplib::to_string(answer.error()) +
                    " failed; is it started, and with this --port?");
  if (answer->status != 200)
    return io_error("the server at " + where + " says that it does not serve: status " +
                    std::to_string(answer->status));
  return {};
}

} // namespace cortiq::serve
