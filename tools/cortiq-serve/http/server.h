#pragma once

// The HTTP side: routes, keys, limits, streams of events.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "formats/status.h"
#include "tools/cortiq-serve/engine/scheduler.h"
#include "tools/cortiq-serve/engine/side_session.h"
#include "tools/cortiq-serve/openai/served_model.h"

namespace cortiq::serve {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;     ///< 0: any free one
  std::string api_key; ///< empty: none is asked for
  uint64_t max_body = 8u << 20;
  unsigned connections = 256;        ///< served at a time
  std::chrono::seconds timeout{600}; ///< for one answer, waiting included
  std::chrono::seconds drain{30};    ///< for what runs when the server is told to end
  bool json_log = false;
};

class HttpServer {
public:
  /// What is given must outlive the server.
  HttpServer(const ServedModel& model, Scheduler& scheduler, SideSession& side_session, const HttpOptions& options);
  ~HttpServer();

  /// Takes the address; the port that it became.
  StatusOr<int> bind();
  /// Serves until stop().
  Status serve();
  /// Takes on nothing more and lets serve() return when what runs is done, or the time for that is up. From any thread.
  void stop();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace cortiq::serve
