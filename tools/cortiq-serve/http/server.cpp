#include "tools/cortiq-serve/http/server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <sodium.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "tools/cortiq-serve/http/chat_page.h"
#include "tools/cortiq-serve/http/connection.h"
#include "tools/cortiq-serve/http/http_library.h"
#include "tools/cortiq-serve/http/metrics.h"
#include "tools/cortiq-serve/http/pieces.h"
#include "tools/cortiq-serve/http/request_log.h"
#include "tools/cortiq-serve/openai/ask.h"
#include "tools/cortiq-serve/openai/embeddings.h"

namespace cortiq::serve {
namespace {

using namespace std::chrono_literals;

/// How often a waiting connection looks whether its client is still there.
constexpr auto kLook = 50ms;
/// For answers that were made when the time to drain was up.
constexpr auto kLastWords = 1s;
constexpr size_t kLoggedPath = 512;            // bytes: with all of them escaped a line of the log is still one piece
constexpr const char* kAnyPath = R"([\s\S]*)"; // a line break is no `.`
constexpr const char* kJsonType = "application/json";
constexpr const char* kTooLarge = "the request is larger than --max-body allows";
constexpr const char* kTimeIsUp = "the time for this answer is up";
constexpr const char* kOffered =
    "there are POST /v1/chat/completions, POST /v1/completions, POST /v1/embeddings, GET /v1/models, GET "
    "/metrics, GET /healthz and the page GET /";

void answer_error(httplib::Response& response, int status, const char* type, const std::string& message) {
  response.status = status;
  response.set_content(dump({{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}}),
                       kJsonType);
}

std::string event(const Json& json) {
  return "data: " + dump(json) + "\n\n";
}

/// One answer on its way to a client as events. Cancels the jobs when it goes away before the end: the client has left.
class EventStream {
public:
  /// Counts itself in `streams` for as long as it lives.
  EventStream(std::vector<std::shared_ptr<Job>> jobs, Ask ask, std::atomic<uint64_t>& streams)
      : pieces_(std::move(jobs)), ask_(std::move(ask)), streams_(streams) {
    ++streams_;
  }
  ~EventStream() { --streams_; }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  /// Called again and again until it ends the stream, or returns false.
  bool write_next(httplib::DataSink& sink) {
    std::string out;
    if (!std::exchange(begun_, true))
      for (size_t i = 0; i < pieces_.size(); ++i)
        add(ask_.wording->begin(i), out);
    Pieces::News news;
    while (out.empty() && !pieces_.wait(kLook, news))
      if (!sink.is_writable())
        return false;
    for (const auto& [choice, piece] : news.pieces)
      add(ask_.wording->piece(choice, piece), out);
    bool failed = false;
    for (const auto& [choice, finish] : news.finishes)
      failed = !end(choice, finish, out) || failed;
    const bool ended = failed || pieces_.ended();
    if (ended && !failed) {
      if (ask_.include_usage)
        out += event(ask_.wording->usage(pieces_.finishes()));
      out += "data: [DONE]\n\n";
    }
    if (!out.empty() && !sink.write(out.data(), out.size()))
      return false;
    if (ended)
      sink.done();
    return true;
  }

private:
  static void add(const std::vector<Json>& chunks, std::string& out) {
    for (const Json& chunk : chunks)
      out += event(chunk);
  }

  /// False: it failed, which ends the stream.
  bool end(size_t choice, const Finish& finish, std::string& out) {
    if (finish.outcome != Outcome::kFailed && finish.outcome != Outcome::kCancelled) {
      add(ask_.wording->end(choice, finish), out);
      return true;
    }
    out += event(
        {{"error",
          {{"message", finish.outcome == Outcome::kFailed ? finish.message : kTimeIsUp}, {"type", "server_error"}}}});
    return false;
  }

  Pieces pieces_;
  Ask ask_;
  std::atomic<uint64_t>& streams_;
  bool begun_ = false;
};

/// The number of a header of digits; nothing when it is none.
std::optional<uint64_t> length_of(const std::string& text) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

} // namespace

struct HttpServer::Impl {
  Impl(const ServedModel& model, Scheduler& scheduler, SideSession& side_session, const HttpOptions& options)
      : model(model), scheduler(scheduler), side_session(side_session), options(options), http(ConnectionLimits()) {
    http.new_task_queue = [this] { return new httplib::ThreadPool(this->options.connections); };
    // Not the library's own choice, which lets a second server share the port and take half of the clients.
    http.set_socket_options([](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http.set_payload_max_length(options.max_body);
    http.set_pre_routing_handler([this](const auto& request, auto& response) { return admit(request, response); });
    http.set_exception_handler([](const auto&, auto& response, std::exception_ptr) {
      answer_error(response, 500, "server_error", "internal error");
    });
    http.set_error_handler([](const auto& request, auto& response) {
      if (request.method.empty()) // behind a head that was not understood nothing can be
        close_after(response);
      if (response.body.empty())
        answer_error(response, response.status, "invalid_request_error",
                     response.status == 404
                         ? "there is no " + request.method + " " + request.path + " here; " + kOffered
                     : response.status == 413 ? kTooLarge
                                              : "the request cannot be served");
    });
    http.set_logger([this](const auto& request, const auto& response) { log(request, response); });
    route();
  }

  void route() {
    http.Get("/healthz", [this](const auto&, auto& response) {
      const bool serving = scheduler.state().serving, ending = scheduler.draining();
      response.status = serving && !ending ? 200 : 503;
      response.set_content(!serving ? "the GPU was lost; start the server anew, or with --fallback=cpu\n"
                           : ending ? "the server is ending\n"
                                    : "ok\n",
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
    if (request.method == "POST" && request.path == "/v1/embeddings")
      return embed(body, response);
    response.status = 404; // the error handler says what
  }

  /// False: `response` says what is wrong. A body that is too large is read to its end, but not kept: what comes behind
  /// it on the connection is the next request. One that was packed is not unpacked any further.
  bool read_body(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader,
                 std::string& body) const {
    if (request.is_multipart_form_data()) {
      reader([](const auto&) { return true; }, [](const char*, size_t) { return true; });
      answer_error(response, 415, "invalid_request_error", "the request has to be JSON");
      return false;
    }
    const bool packed = request.has_header("Content-Encoding");
    bool large = false;
    const bool whole = reader([&](const char* data, size_t size) {
      large = large || size > options.max_body - body.size();
      if (!large)
        body.append(data, size);
      return !(large && packed);
    });
    if (whole && !large)
      return true;
    if (!whole)
      close_after(response);
    response.status = large ? 413 : response.status < 400 ? 400 : response.status;
    return false;
  }

  /// The rest of the request is not looked at.
  static void close_after(httplib::Response& response) {
    if (Connection* connection = Connection::of_this_thread())
      connection->close_after();
    response.set_header("Connection", "close");
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
    const size_t lengths = request.get_header_value_count("Content-Length");
    const bool parts = request.has_header("Transfer-Encoding");
    const std::optional<uint64_t> length =
        lengths == 1 ? length_of(request.get_header_value("Content-Length")) : std::nullopt;
    if (lengths > 1 || (lengths == 1 && (!length || parts))) {
      close_after(response);
      answer_error(response, 400, "invalid_request_error", "the request says in no single way how long it is");
      return Handled;
    }
    if (method == "POST" || method == "PUT" || method == "PATCH" || method == "DELETE") {
      if (length && *length > options.max_body) {
        close_after(response);
        answer_error(response, 413, "invalid_request_error", kTooLarge);
        return Handled;
      }
      if (length || parts)
        return Unhandled;
      answer_error(response, 411, "invalid_request_error", "the request does not say how long it is");
      return Handled;
    }
    if (lengths != 0 || parts)
      close_after(response); // a body where none is read
    if (method == "PRI") {   // the library would read a body without a bound
      answer_error(response, 400, "invalid_request_error", "the request cannot be served");
      return Handled;
    }
    if (request.path == "/" || request.path == "/healthz" || has_key(request))
      return Unhandled;
    refuse_key(response);
    return Handled;
  }

  /// The request's JSON, if it is some and names this model.
  std::optional<Json> open_body(const std::string& text, httplib::Response& response) const {
    StatusOr<Json> body = parse_body(text);
    if (!body.ok()) {
      answer_error(response, 400, "invalid_request_error", body.status().message());
      return std::nullopt;
    }
    if (const auto name = body->find("model"); name != body->end() && name->is_string())
      if (const auto found = model.find(name->get_ref<const std::string&>()); !found.ok()) {
        answer_error(response, 404, "invalid_request_error", found.status().message());
        return std::nullopt;
      }
    return *std::move(body);
  }

  static void refuse(httplib::Response& response, const Status& status) {
    const bool internal = status.code() == StatusCode::kInternal;
    answer_error(response, internal ? 500 : 400, internal ? "server_error" : "invalid_request_error", status.message());
  }

  static void refuse_for_now(httplib::Response& response) {
    response.set_header("Retry-After", "1");
    answer_error(response, 429, "rate_limit_error", "too many requests are waiting; try again later");
  }

  void embed(const std::string& text, httplib::Response& response) {
    const std::optional<Json> body = open_body(text, response);
    if (!body)
      return;
    const StatusOr<EmbeddingAsk> ask = parse_embeddings(*body, model);
    if (!ask.ok())
      return refuse(response, ask.status());
    if (scheduler.draining())
      return answer_error(response, 503, "server_error", "the server is ending");
    const SideSession::Turn turn(side_session);
    if (!turn.entered())
      return refuse_for_now(response);
    const auto deadline = Job::Clock::now() + options.timeout;
    const Connection* connection = Connection::of_this_thread();
    std::vector<std::vector<float>> vectors;
    for (const std::vector<uint32_t>& input : ask->inputs) {
      StatusOr<std::vector<float>> vector = side_session.embed(input, ask->pooling, ask->overlay, deadline);
      if (!vector.ok() && vector.status().code() == StatusCode::kUnsupported)
        return refuse(response, vector.status());
      if (!vector.ok())
        return answer_error(response, 500, "server_error", vector.status().message());
      vectors.push_back(*std::move(vector));
      if (Job::Clock::now() >= deadline || (connection && connection->gone()))
        return answer_error(response, 504, "server_error", kTimeIsUp);
    }
    response.set_content(dump(embeddings_json(*ask, vectors)), kJsonType);
  }

  /// False: `response` says what is wrong.
  bool score_prompts(Ask& ask, Job::Clock::time_point deadline, httplib::Response& response) {
    const SideSession::Turn turn(side_session);
    if (!turn.entered()) {
      refuse_for_now(response);
      return false;
    }
    const std::vector<TokenRecord>* before = nullptr; // of the same prompt
    std::vector<TokenRecord> tokens;
    for (size_t i = 0; i < ask.requests.size(); ++i) {
      const Request& request = ask.requests[i];
      if (!before || request.prompt != ask.requests[i - 1].prompt) {
        StatusOr<std::vector<TokenRecord>> scored =
            side_session.score(request.prompt, request.logprobs.value_or(0), request.overlay, deadline);
        if (!scored.ok()) {
          answer_error(response, 500, "server_error", scored.status().message());
          return false;
        }
        tokens = *std::move(scored);
        before = &tokens;
      }
      ask.wording->prompt(i, tokens);
    }
    return true;
  }

  void complete(const std::string& text, const httplib::Request& request, httplib::Response& response,
                StatusOr<Ask> (*parse)(const Json&, const ServedModel&)) {
    const std::optional<Json> body = open_body(text, response);
    if (!body)
      return;
    StatusOr<Ask> parsed = parse(*body, model);
    if (!parsed.ok())
      return refuse(response, parsed.status());
    Ask ask = *std::move(parsed);
    const auto deadline = Job::Clock::now() + options.timeout;
    if (ask.score_prompts && !score_prompts(ask, deadline, response))
      return;
    for (Request& wanted : ask.requests)
      wanted.client = request.remote_addr;
    std::vector<std::shared_ptr<Job>> jobs = scheduler.submit_all(std::move(ask.requests), deadline);
    if (jobs.empty() && scheduler.draining())
      return answer_error(response, 503, "server_error", "the server is ending");
    if (jobs.empty())
      return refuse_for_now(response);
    if (!ask.stream)
      return wait(response, std::move(jobs), *ask.wording);
    const auto stream = std::make_shared<EventStream>(std::move(jobs), std::move(ask), streams);
    response.set_header("Cache-Control", "no-cache");
    response.set_chunked_content_provider(
        "text/event-stream", [stream](size_t, httplib::DataSink& sink) { return stream->write_next(sink); });
  }

  void wait(httplib::Response& response, std::vector<std::shared_ptr<Job>> jobs, Wording& wording) {
    const Connection* connection = Connection::of_this_thread();
    std::vector<Answered> answers(jobs.size());
    Pieces pieces(std::move(jobs));
    auto look = Job::Clock::now();
    while (!pieces.ended()) {
      Pieces::News news;
      pieces.wait(kLook, news);
      // By the clock and not when nothing comes: tokens may come without a pause.
      if (const auto now = Job::Clock::now(); now >= look) {
        look = now + kLook;
        if (connection && connection->gone())
          pieces.cancel();
      }
      for (auto& [choice, piece] : news.pieces) {
        answers[choice].text += piece.text;
        std::move(piece.tokens.begin(), piece.tokens.end(), std::back_inserter(answers[choice].tokens));
      }
      for (auto& [choice, finish] : news.finishes) {
        if (finish.outcome == Outcome::kFailed)
          return answer_error(response, 500, "server_error", finish.message);
        if (finish.outcome == Outcome::kCancelled)
          return answer_error(response, 504, "server_error", kTimeIsUp);
        answers[choice].finish = std::move(finish);
      }
    }
    response.set_content(dump(wording.whole(answers)), kJsonType);
  }

  void log(const httplib::Request& request, const httplib::Response& response) {
    char time[32];
    const std::time_t now = std::time(nullptr);
    std::tm parts = {};
    std::strftime(time, sizeof time, "%FT%TZ", gmtime_r(&now, &parts));
    const Connection* connection = Connection::of_this_thread();
    const double seconds = connection ? connection->seconds() : 0;
    const std::string path = request.path.substr(0, kLoggedPath);
    if (options.json_log) {
      lines.write(dump({{"time", time},
                        {"client", request.remote_addr},
                        {"method", request.method},
                        {"path", path},
                        {"status", response.status},
                        {"seconds", std::round(seconds * 1e6) / 1e6}}));
      return;
    }
    char rest[48];
    std::snprintf(rest, sizeof rest, " %d %.3f s", response.status, seconds);
    lines.write(std::string(time) + " " + request.remote_addr + " " + request.method + " " + dump(path) + rest);
  }

  const ServedModel& model;
  Scheduler& scheduler;
  SideSession& side_session;
  const HttpOptions options;
  HttpLibrary http;
  RequestLog lines{STDERR_FILENO};
  std::atomic<bool> ended = false;   ///< serve() is over
  std::atomic<uint64_t> streams = 0; ///< on their way
};

HttpServer::HttpServer(const ServedModel& model, Scheduler& scheduler, SideSession& side_session,
                       const HttpOptions& options)
    : impl_(std::make_unique<Impl>(model, scheduler, side_session, options)) {}

HttpServer::~HttpServer() = default;

StatusOr<int> HttpServer::bind() {
  const HttpOptions& options = impl_->options;
  const int port = options.port == 0                                      ? impl_->http.bind_to_any_port(options.host)
                   : impl_->http.bind_to_port(options.host, options.port) ? options.port
                                                                          : -1;
  if (port < 0)
    return io_error("cannot listen on " + options.host + ":" + std::to_string(options.port) + ": " +
                    why_not_listen(options.host, options.port));
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
  // Answers on their way get there; who sends or reads no further must not keep the server from ending.
  const auto said = Job::Clock::now() + kLastWords, patience = std::max(until, said);
  // The library cuts the streams that it finds: their last events come first.
  while (impl_->streams != 0 && Job::Clock::now() < said)
    std::this_thread::sleep_for(1ms);
  impl_->http.stop();
  while (!impl_->ended) {
    std::this_thread::sleep_for(10ms);
    if (Job::Clock::now() >= patience)
      impl_->http.shut_connections();
  }
}

} // namespace cortiq::serve
