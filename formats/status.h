#pragma once

// Errors as values. The runtime and the readers use no exceptions: whatever can fail on input returns one of these.

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace cortiq {

/// What kind of failure a Status reports; tools turn it into an exit code (see exit_code()).
enum class StatusCode {
  kOk,
  kInvalid,     ///< the input is damaged, foreign or contradicts itself
  kUnsupported, ///< the input is sound but asks for something that is not implemented or not present on this machine
  kIo,          ///< the operating system refused
  kInternal,    ///< a bug of ours
};

/// Success, or a failure with one sentence for the user that names file, place and remedy.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same failure with "prefix: " before its sentence; success stays success.
  Status with_prefix(const std::string& prefix) const {
    return ok() ? Status() : Status(code_, prefix + ": " + message_);
  }

private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status invalid(std::string message) {
  return {StatusCode::kInvalid, std::move(message)};
}
inline Status unsupported(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}
inline Status io_error(std::string message) {
  return {StatusCode::kIo, std::move(message)};
}
inline Status internal_error(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}

/// The exit code of a tool that ends with this status: 0, 2 for anything wrong with the input or the machine, 1 for
/// bugs.
inline int exit_code(const Status& status) {
  if (status.ok())
    return 0;
  return status.code() == StatusCode::kInternal ? 1 : 2;
}

/// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] StatusOr {
public:
  StatusOr(T value) : value_(std::move(value)) {}
  StatusOr(Status status) : status_(std::move(status)) {
    assert(!status_.ok() && "a StatusOr without value needs a failure");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

private:
  Status status_;
  std::optional<T> value_;
};

} // namespace cortiq

#define CORTIQ_CONCAT_(a, b) a##b
#define CORTIQ_CONCAT(a, b) CORTIQ_CONCAT_(a, b)

/// Returns the failure of `expr` from the enclosing function.
#define CORTIQ_RETURN_IF_ERROR(expr)                                                                                   \
  do {                                                                                                                 \
    if (::cortiq::Status cortiq_status_ = (expr); !cortiq_status_.ok())                                                \
      return cortiq_status_;                                                                                           \
  } while (false)

/// Declares or assigns `lhs` from the StatusOr `expr`, or returns its failure.
#define CORTIQ_ASSIGN_OR_RETURN(lhs, expr) CORTIQ_ASSIGN_OR_RETURN_(CORTIQ_CONCAT(cortiq_or_, __LINE__), lhs, expr)
#define CORTIQ_ASSIGN_OR_RETURN_(tmp, lhs, expr)                                                                       \
  auto tmp = (expr);                                                                                                   \
  if (!tmp.ok())                                                                                                       \
    return tmp.status();                                                                                               \
  lhs = *std::move(tmp)
