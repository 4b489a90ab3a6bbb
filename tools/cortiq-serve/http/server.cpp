#include "tools/cortiq-serve/http/server.h"

#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <httplib.h>
#include <sodium.h>

#include "tools/cortiq-serve/http/chat_page.h"
#include "tools/cortiq-serve/http/metrics.h"
#include "tools/cortiq-serve/http/peer_socket.h"
#include "tools/cortiq-serve/openai/ask.h"

namespace cortiq::serve {
namespace {

using namespace std::chrono_literals;

/// How often a waiting connection looks whether its client is still there.
constexpr auto kLook = 50ms;
constexpr const char* kJsonType = "application/json";

void answer_error(httplib::Response& response, int status, const char* type, const std::string& message) {
  response.status = status;
  response.set_content(dump({{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}}),
                       kJsonType);
}

std::string event(const Json& json) {
  return "data: " + dump(json) + "\n\n";
}

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
    http.set_payload_max_length(options.max_body);
    http.set_read_timeout(30, 0);
    http.set_write_timeout(30, 0); // a reader that stands still for so long has left
    http.set_keep_alive_timeout(5);
    http.set_pre_routing_handler([this](const auto& request, auto& response) { return admit(request, response); });
    http.set_exception_handler([](const auto&, auto& response, std::exception_ptr) {
      answer_error(response, 500, "server_error", "internal error");
    });
    http.set_error_handler([](const auto&, auto& response) {
      if (response.body.empty())
        answer_error(response, response.status, "invalid_request_error",
                     response.status == 404   ? "there is nothing at this path"
                     : response.status == 413 ? "the request is too large"
                                              : "the request cannot be served");
    });
    http.set_logger([this](const auto& request, const auto& response) { log(request, response); });
    route();
  }

  void route() {
    http.Get("/healthz", [](const auto&, auto& response) { response.set_content("ok\n", "text/plain"); });
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
    http.Post("/v1/chat/completions",
              [this](const auto& request, auto& response) { complete(request, response, parse_chat); });
    http.Post("/v1/completions",
              [this](const auto& request, auto& response) { complete(request, response, parse_completion); });
  }

  Json describe(const std::string& name) const {
    return {{"id", name}, {"object", "model"}, {"created", model.created}, {"owned_by", "cortiq"}};
  }

  /// Asks for the key, where there is one, before anything is read.
  httplib::Server::HandlerResponse admit(const httplib::Request& request, httplib::Response& response) const {
    if (options.api_key.empty() || request.path == "/" || request.path == "/healthz")
      return httplib::Server::HandlerResponse::Unhandled;
    const std::string given = request.get_header_value("Authorization"), wanted = "Bearer " + options.api_key;
    if (given.size() == wanted.size() && sodium_memcmp(given.data(), wanted.data(), wanted.size()) == 0)
      return httplib::Server::HandlerResponse::Unhandled;
    answer_error(response, 401, "authentication_error", "the API key is missing or wrong");
    return httplib::Server::HandlerResponse::Handled;
  }

  void complete(const httplib::Request& request, httplib::Response& response,
                StatusOr<Ask> (*parse)(const Json&, const ServedModel&)) {
    const StatusOr<Json> body = parse_body(request.body);
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
  httplib::Server http;
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
  return port;
}

Status HttpServer::serve() {
  if (!impl_->http.listen_after_bind())
    return io_error("the server's socket failed");
  return {};
}

void HttpServer::stop() {
  impl_->scheduler.drain(Job::Clock::now() + impl_->options.drain);
  impl_->http.stop();
}

} // namespace cortiq::serve
