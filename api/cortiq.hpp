// cortiq for C++: the interface of cortiq.h with owners, strings and exceptions. A header only; C++17.
#ifndef CORTIQ_HPP
#define CORTIQ_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <cortiq.h>

namespace cortiq {

/// A failure: what() is the sentence for people.
class Error : public std::runtime_error {
public:
  explicit Error(cortiq_status status) : std::runtime_error(cortiq_last_error()), status_(status) {}
  cortiq_status status() const { return status_; } ///< CORTIQ_INVALID and so on

private:
  cortiq_status status_;
};

inline void check(cortiq_status status) {
  if (status != CORTIQ_OK)
    throw Error(status);
}

/// A loaded artifact. Copies share it; may be used from any thread.
class Model {
public:
  explicit Model(const std::string& path, const cortiq_load_options& options = CORTIQ_LOAD_OPTIONS) {
    cortiq_model* model = nullptr;
    check(cortiq_model_load(path.c_str(), &options, &model));
    model_.reset(model, cortiq_model_free);
  }

  /// Its strings live as long as the model.
  cortiq_model_info info() const {
    cortiq_model_info out = CORTIQ_MODEL_INFO;
    check(cortiq_model_describe(get(), &out));
    return out;
  }
  std::vector<std::string> skills() const { return names(cortiq_model_skill); }
  std::vector<std::string> masks() const { return names(cortiq_model_mask); }

  /// `flags`: CORTIQ_ADD_SPECIAL, CORTIQ_PARSE_SPECIAL.
  std::vector<uint32_t> encode(std::string_view text, uint32_t flags = CORTIQ_ADD_SPECIAL) const {
    return filled<std::vector<uint32_t>>([&](uint32_t* ids, size_t capacity, size_t* count) {
      return cortiq_encode(get(), text.data(), text.size(), flags, ids, capacity, count);
    });
  }
  std::string decode(const std::vector<uint32_t>& ids) const {
    return filled<std::string>([&](char* text, size_t capacity, size_t* count) {
      return cortiq_decode(get(), ids.data(), ids.size(), text, capacity, count);
    });
  }
  /// `json`: an object with `messages`.
  std::vector<uint32_t> encode_chat(std::string_view json) const {
    return filled<std::vector<uint32_t>>([&](uint32_t* ids, size_t capacity, size_t* count) {
      return cortiq_encode_chat(get(), json.data(), json.size(), ids, capacity, count);
    });
  }

  cortiq_model* get() const { return model_.get(); }

private:
  std::vector<std::string> names(const char* (*name)(const cortiq_model*, uint64_t)) const {
    std::vector<std::string> out;
    while (const char* next = name(get(), out.size()))
      out.emplace_back(next);
    return out;
  }
  /// Asks for the size first, then for the contents.
  template <class Out, class Fill>
  static Out filled(Fill fill) {
    size_t count = 0;
    check(fill(nullptr, 0, &count));
    Out out(count, {});
    check(fill(out.data(), out.size(), &count));
    return out;
  }

  std::shared_ptr<cortiq_model> model_;
};

/// Logits of one or more positions, [rows x columns], valid until the session's next call.
struct Logits {
  const float* data;
  size_t rows, columns;
};

/// One conversation. For one thread at a time, but for select() and cancel().
class Session {
public:
  /// Called with a token and the text that became final with it; false ends the generation. What it throws passes
  /// through generate().
  using OnToken = std::function<bool(uint32_t id, std::string_view text)>;

  explicit Session(const Model& model, const cortiq_session_options& options = CORTIQ_SESSION_OPTIONS)
      : vocab_(model.info().vocab), hidden_(model.info().hidden) {
    cortiq_session* session = nullptr;
    check(cortiq_session_create(model.get(), &options, &session));
    session_.reset(session);
  }

  uint64_t position() const { return cortiq_session_position(get()); }
  void rewind(uint64_t position) { check(cortiq_session_rewind(get(), position)); }
  /// Keeps the common beginning with `ids`; its length.
  size_t keep(const std::vector<uint32_t>& ids) {
    size_t kept = 0;
    check(cortiq_session_keep(get(), ids.data(), ids.size(), &kept));
    return kept;
  }
  /// The ids that are held.
  std::vector<uint32_t> ids() const {
    size_t count = 0;
    check(cortiq_session_ids(get(), nullptr, 0, &count));
    std::vector<uint32_t> out(count);
    check(cortiq_session_ids(get(), out.data(), out.size(), &count));
    return out;
  }
  /// To a file, and from one in place of what is held.
  void save(const std::string& path) { check(cortiq_session_save(get(), path.c_str())); }
  void load(const std::string& path) { check(cortiq_session_load(get(), path.c_str())); }
  Logits run(const std::vector<uint32_t>& ids, bool all = false) {
    Logits out = {nullptr, 0, vocab_};
    check(cortiq_session_run(get(), ids.data(), ids.size(), all ? 1 : 0, &out.data, &out.rows));
    return out;
  }
  /// run() of an id that was chosen from the logits of the one before.
  Logits append(uint32_t id) {
    Logits out = {nullptr, 1, vocab_};
    check(cortiq_session_append(get(), id, &out.data));
    return out;
  }
  /// One vector for `ids`, of length 1; the session is empty then. `pooling`: CORTIQ_POOL_MEAN or CORTIQ_POOL_LAST.
  std::vector<float> embed(const std::vector<uint32_t>& ids, int32_t pooling = CORTIQ_POOL_MEAN) {
    std::vector<float> out(hidden_);
    size_t count = 0;
    check(cortiq_session_embed(get(), ids.data(), ids.size(), pooling, out.data(), out.size(), &count));
    out.resize(count);
    return out;
  }
  /// Null: what applies when nothing is said.
  void select(const char* skill, const char* mask = nullptr) { check(cortiq_session_select(get(), skill, mask)); }
  void cancel() { cortiq_session_cancel(get()); }

  cortiq_result generate(const std::vector<uint32_t>& ids, const OnToken& on_token,
                         const cortiq_generate_options& options = CORTIQ_GENERATE_OPTIONS) {
    Sink sink{on_token, nullptr};
    cortiq_result result = CORTIQ_RESULT;
    const cortiq_status status =
        cortiq_session_generate(get(), ids.data(), ids.size(), &options, &Sink::take, &sink, &result);
    if (sink.thrown)
      std::rethrow_exception(sink.thrown);
    check(status);
    return result;
  }
  /// The whole text.
  std::string generate(const std::vector<uint32_t>& ids,
                       const cortiq_generate_options& options = CORTIQ_GENERATE_OPTIONS) {
    std::string out;
    generate(
        ids,
        [&](uint32_t, std::string_view text) {
          out += text;
          return true;
        },
        options);
    return out;
  }

  cortiq_session* get() const { return session_.get(); }

private:
  struct Free {
    void operator()(cortiq_session* session) const { cortiq_session_free(session); }
  };
  /// No exception passes through C.
  struct Sink {
    const OnToken& on_token;
    std::exception_ptr thrown;

    static int32_t take(void* user, uint32_t id, const char* text, size_t length) {
      Sink& sink = *static_cast<Sink*>(user);
      try {
        return sink.on_token(id, {text, length}) ? 0 : 1;
      } catch (...) {
        sink.thrown = std::current_exception();
        return 1;
      }
    }
  };

  std::unique_ptr<cortiq_session, Free> session_;
  size_t vocab_, hidden_;
};

} // namespace cortiq

#endif
