#include "tools/cortiq-serve/http/server.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <httplib.h>
#include <sodium.h>
#include <sys/socket.h>
#include <thread>

#include "tools/cortiq-serve/http/chat_page.h"
#include "tools/cortiq-serve/http/metrics.h"
#include "tools/cortiq-serve/http/peer_socket.h"
#include "tools/cortiq-serve/openai/ask.h"

namespace cortiq::serve {
namespace {

using namespace std::chrono_literals;

/// How often a waiting connection looks whether its client is still there.
constexpr auto kLook = 50ms;
/// For answers that were made when the time to drain was up.
constexpr auto kLastWords = 1s;
constexpr const char* kAnyPath = R"([\s\S]*)"; // a line break is no `.`
constexpr const char* kJsonType = "application/json";
constexpr const char* kOffered = "there are POST /v1/chat/completions, POST /v1/completions, GET /v1/models, GET "
                                 "/metrics, GET /healthz and the page GET /";

void answer_error(httplib::Response& response, int status, const char* type, const std::string& message) {
  response.status = status;
  response.set_content(dump({{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}}),
                       kJsonType);
}

std::string event(const Json& json) {
  return "data: " + dump(json) + "\n\n";
}

/// The library lets so few connections wait to be accepted that a burst of clients finds some reset.
class Http : public httplib::Server {
public:
  void let_wait(unsigned connections) { ::listen(svr_sock_, static_cast<int>(connections)); }
};

/// One answer on its way to a client as events. Cancels the job when it goes away before the end: the client has left.
class EventStream {
public:
  EventStream(std::shared_ptr<Job> job, Ask ask) : job_(std::move(job)), ask_(std::move(ask)) {}
  ~EventStream() { job_->cancel(); }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  /// Called again and again until it ends the stream, or returns false.
  bool write_next(httplib::DataSink& sink) {
    std::string out;
    if (!std::exchange(begun_, true))
      if (const Json first = ask_.wording->first_chunk(); !first.is_null())
        out += event(first);
    std::vector<Piece> pieces;
    while (out.empty() && !job_->wait(kLook, pieces))
      if (!sink.is_writable())
        return false;
    for (const Piece& piece : pieces)
      out += event(ask_.wording->chunk(piece));
    const std::optional<Finish> finish = job_->finished();
    if (finish)
      out += end(*finish);
    if (!sink.write(out.data(), out.size()))
      return false;
    if (finish)
      sink.done();
    return true;
  }

private:
  std::string end(const Finish& finish) const {
    if (finish.outcome == Outcome::kFailed || finish.outcome == Outcome::kCancelled)
      return event(
          {{"error",
            {{"message", finish.outcome == Outcome::kFailed ? finish.message : "the time for this answer is up"},
             {"type", "server_error"}}}});
    std::string out = event(ask_.wording->last_chunk(finish));
    if (ask_.include_usage)
      out += event(ask_.wording->usage_chunk(finish));
    return out + "data: [DONE]\n\n";
  }

  std::shared_ptr<Job> job_;
  Ask ask_;
  bool begun_ = false;
};

} // namespace

struct HttpServer::Impl {
  Impl(const ServedModel& model, Scheduler& scheduler, const HttpOptions& options)
      : model(model), scheduler(scheduler), options(options) {
    http.new_task_queue = [this] { return new httplib::ThreadPool(this->options.connections); };
    // Not the library's own choice, which lets a second server share the port and take half of the clients.
    http.set_socket_options([](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http.set_payload_max_length(options.max_body);
    http.set_read_timeout(30, 0);
    http.set_write_timeout(30, 0); // a reader that stands still for so long has left
    http.set_keep_alive_timeout(5);
    http.set_pre_routing_handler([this](const auto& request, auto& response) { return admit(request, response); });
    http.set_exception_handler([](const auto&, auto& response, std::exception_ptr) {
      answer_error(response, 500, "server_error", "internal error");
    });
    http.set_error_handler([](const auto& request, auto& response) {
      if (response.body.empty())
        answer_error(response, response.status, "invalid_request_error",
                     response.status == 404
                         ? "there is no " + request.method + " " + request.path + " here; " + kOffered
                     : response.status == 413 ? "the request is larger than --max-body allows"
                                              : "the request cannot be served");
    });
    http.set_logger([this](const auto& request, const auto& response) { log(request, response); });
    route();
  }

  void route() {
    http.Get("/healthz", [this](const auto&, auto& response) {
      const bool serving = scheduler.state().serving;
      response.status = serving ? 200 : 503;
      response.set_content(serving ? "ok\n" : "the GPU was lost; start the server anew, or with --fallback=cpu\n",
                           "text/plain");
    });
    http.Get("/metrics", [this](const auto&, auto& response) {
      response.set_content(metrics_text(scheduler.state()), "text/plain; version=0.0.4");
    });
    http.Get("/", [](const auto&, auto& response) {
      response.set_header(
          "Content-Security-Policy",
          "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'");
      response.set_content(kChatPage.data(), kChatPage.size(), "text/html; charset=utf-8");
    });
    http.Get("/v1/models", [this](const auto&, auto& response) {
      Json list = Json::array();
      for (const std::string& name : model.names())
        list.push_back(describe(name));
      response.set_content(dump({{"object", "list"}, {"data", std::move(list)}}), kJsonType);
    });
    http.Get(R"(/v1/models/(.+))", [this](const auto& request, auto& response) {
      const std::string name = request.matches[1];
      if (const auto found = model.find(name); !found.ok())
        return answer_error(response, 404, "invalid_request_error", found.status().message());
      response.set_content(dump(describe(name)), kJsonType);
    });
    // Whatever has a body comes here, so that none is read without a bound: the library bounds only announced lengths.
    const auto take = [this](const auto& request, auto& response, const auto& reader) {
      post(request, response, reader);
    };
    http.Post(kAnyPath, take);
    http.Put(kAnyPath, take);
    http.Patch(kAnyPath, take);
    http.Delete(kAnyPath, take);
  }

  void post(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader) {
    std::string body;
    if (!read_body(request, response, reader, body))
      return;
    if (!has_key(request))
      return refuse_key(response);
    if (request.method == "POST" && request.path == "/v1/chat/completions")
      return complete(body, request, response, parse_chat);
    if (request.method == "POST" && request.path == "/v1/completions")
      return complete(body, request, response, parse_completion);
    response.status = 404; // the error handler says what
  }

  /// False: `response` says what is wrong. A body that is too large is read to its end, but not kept: what comes behind
  /// it on the connection is the next request.
  bool read_body(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader,
                 std::string& body) const {
    if (request.is_multipart_form_data()) {
      reader([](const auto&) { return true; }, [](const char*, size_t) { return true; });
      answer_error(response, 415, "invalid_request_error", "the request has to be JSON");
      return false;
    }
    bool large = false;
    const bool whole = reader([&](const char* data, size_t size) {
      large = large || size > options.max_body - body.size();
      if (!large)
        body.append(data, size);
      return true;
    });
    if (whole && !large)
      return true;
    response.status = large ? 413 : response.status < 400 ? 400 : response.status;
    return false;
  }

  Json describe(const std::string& name) const {
    return {{"id", name}, {"object", "model"}, {"created", model.created}, {"owned_by", "cortiq"}};
  }

  bool has_key(const httplib::Request& request) const {
    if (options.api_key.empty())
      return true;
    const std::string given = request.get_header_value("Authorization"), wanted = "Bearer " + options.api_key;
    return given.size() == wanted.size() && sodium_memcmp(given.data(), wanted.data(), wanted.size()) == 0;
  }

  static void refuse_key(httplib::Response& response) {
    answer_error(response, 401, "authentication_error", "the API key is missing or wrong");
  }

  /// What is decided by a request's head. Requests with a body are asked for the key once it is read, or it would be
  /// taken for the connection's next request.
  httplib::Server::HandlerResponse admit(const httplib::Request& request, httplib::Response& response) const {
    using enum httplib::Server::HandlerResponse;
    const std::string& method = request.method;
    if (method == "POST" || method == "PUT" || method == "PATCH" || method == "DELETE") {
      if (request.has_header("Content-Length") || request.has_header("Transfer-Encoding"))
        return Unhandled;
      answer_error(response, 411, "invalid_request_error", "the request does not say how long it is");
      return Handled;
    }
    if (method == "PRI") { // the library would read a body without a bound
      answer_error(response, 400, "invalid_request_error", "the request cannot be served");
      return Handled;
    }
    if (request.path == "/" || request.path == "/healthz" || has_key(request))
      return Unhandled;
    refuse_key(response);
    return Handled;
  }

  void complete(const std::string& text, const httplib::Request& request, httplib::Response& response,
                StatusOr<Ask> (*parse)(const Json&, const ServedModel&)) {
    const StatusOr<Json> body = parse_body(text);
    if (!body.ok())
      return answer_error(response, 400, "invalid_request_error", body.status().message());
    if (const auto name = body->find("model"); name != body->end() && name->is_string())
      if (const auto found = model.find(name->get_ref<const std::string&>()); !found.ok())
        return answer_error(response, 404, "invalid_request_error", found.status().message());
    StatusOr<Ask> parsed = parse(*body, model);
    if (!parsed.ok()) {
      const bool internal = parsed.status().code() == StatusCode::kInternal;
      return answer_error(response, internal ? 500 : 400, internal ? "server_error" : "invalid_request_error",
                          parsed.status().message());
    }
    Ask ask = *std::move(parsed);
    Request wanted = std::move(ask.request);
    wanted.client = request.remote_addr;
    const std::shared_ptr<Job> job = scheduler.submit(std::move(wanted), Job::Clock::now() + options.timeout);
    if (!job && scheduler.draining())
      return answer_error(response, 503, "server_error", "the server is ending");
    if (!job) {
      response.set_header("Retry-After", "1");
      return answer_error(response, 429, "rate_limit_error", "too many requests are waiting; try again later");
    }
    if (!ask.stream)
      return wait(request, response, *job, *ask.wording);
    const auto stream = std::make_shared<EventStream>(job, std::move(ask));
    response.set_header("Cache-Control", "no-cache");
    response.set_chunked_content_provider(
        "text/event-stream", [stream](size_t, httplib::DataSink& sink) { return stream->write_next(sink); });
  }

  void wait(const httplib::Request& request, httplib::Response& response, Job& job, const Wording& wording) {
    const PeerSocket peer(request.remote_addr, request.remote_port);
    std::string text;
    std::vector<TokenRecord> tokens;
    std::optional<Finish> finish;
    auto look = Job::Clock::now();
    while (!(finish = job.finished())) {
      std::vector<Piece> pieces;
      job.wait(kLook, pieces);
      // By the clock and not when nothing comes: tokens may come without a pause.
      if (const auto now = Job::Clock::now(); now >= look) {
        look = now + kLook;
        if (peer.closed())
          job.cancel();
      }
      for (Piece& piece : pieces) {
        text += piece.text;
        std::move(piece.tokens.begin(), piece.tokens.end(), std::back_inserter(tokens));
      }
    }
    if (finish->outcome == Outcome::kFailed)
      return answer_error(response, 500, "server_error", finish->message);
    if (finish->outcome == Outcome::kCancelled)
      return answer_error(response, 504, "server_error", "the time for this answer is up");
    response.set_content(dump(wording.whole(text, tokens, *finish)), kJsonType);
  }

  void log(const httplib::Request& request, const httplib::Response& response) const {
    char time[32];
    const std::time_t now = std::time(nullptr);
    std::tm parts = {};
    std::strftime(time, sizeof time, "%FT%TZ", gmtime_r(&now, &parts));
    if (options.json_log)
      std::fprintf(stderr, "%s\n",
                   dump({{"time", time},
                         {"client", request.remote_addr},
                         {"method", request.method},
                         {"path", request.path},
                         {"status", response.status}})
                       .c_str());
    else
      std::fprintf(stderr, "%s %s %s %s %d\n", time, request.remote_addr.c_str(), request.method.c_str(),
                   dump(request.path).c_str(), response.status);
  }

  const ServedModel& model;
  Scheduler& scheduler;
  const HttpOptions options;
  Http http;
  std::atomic<bool> ended = false; ///< serve() is over
};

HttpServer::HttpServer(const ServedModel& model, Scheduler& scheduler, const HttpOptions& options)
    : impl_(std::make_unique<Impl>(model, scheduler, options)) {}

HttpServer::~HttpServer() = default;

StatusOr<int> HttpServer::bind() {
  const HttpOptions& options = impl_->options;
  const int port = options.port == 0                                      ? impl_->http.bind_to_any_port(options.host)
                   : impl_->http.bind_to_port(options.host, options.port) ? options.port
                                                                          : -1;
  if (port < 0)
    return io_error("cannot listen on " + options.host + ":" + std::to_string(options.port) +
                    "; is another server there already?");
  impl_->http.let_wait(options.connections);
  return port;
}

Status HttpServer::serve() {
  const bool served = impl_->http.listen_after_bind();
  impl_->ended = true;
  if (!served)
    return io_error("the server's socket failed");
  return {};
}

void HttpServer::stop() {
  const auto until = Job::Clock::now() + impl_->options.drain;
  impl_->scheduler.drain(until);
  // The library does not hear of an end before it has begun.
  while (!impl_->http.is_running() && !impl_->ended)
    std::this_thread::sleep_for(1ms);
  impl_->http.stop();
  // Answers on their way get there; who sends or reads no further must not keep the server from ending.
  const auto patience = std::max(until, Job::Clock::now() + kLastWords);
  while (!impl_->ended) {
    std::this_thread::sleep_for(10ms);
    if (Job::Clock::now() >= patience)
      shut_connections();
  }
}

} // namespace cortiq::serve
