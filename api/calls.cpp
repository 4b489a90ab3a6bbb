#include "api/calls.h"

namespace cortiq::api {
namespace {

/// Short of memory there is still a sentence.
thread_local std::string last_error;
thread_local bool last_error_lost = false;

cortiq_status status_of(StatusCode code) {
  switch (code) {
  case StatusCode::kOk:
    return CORTIQ_OK;
  case StatusCode::kInvalid:
    return CORTIQ_INVALID;
  case StatusCode::kUnsupported:
    return CORTIQ_UNSUPPORTED;
  case StatusCode::kIo:
    return CORTIQ_IO;
  case StatusCode::kInternal:
    return CORTIQ_INTERNAL;
  }
  return CORTIQ_INTERNAL;
}

} // namespace

cortiq_status fail(cortiq_status status, const std::string& message) noexcept {
  try {
    last_error = message;
    last_error_lost = false;
  } catch (const std::bad_alloc&) {
    last_error_lost = true;
  }
  return status;
}

cortiq_status finish(const Status& status) noexcept {
  return status.ok() ? CORTIQ_OK : fail(status_of(status.code()), status.message());
}

} // namespace cortiq::api

const char* cortiq_last_error(void) {
  return cortiq::api::last_error_lost ? "there is not enough memory" : cortiq::api::last_error.c_str();
}

const char* cortiq_version(void) {
  return CORTIQ_VERSION;
}
