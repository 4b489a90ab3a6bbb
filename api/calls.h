#pragma once

// How a function of cortiq.h ends: a status, and for failures a sentence that the thread keeps.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "api/cortiq.h"
#include "formats/status.h"

namespace cortiq::api {

/// Keeps `message` for cortiq_last_error() and returns `status`.
cortiq_status fail(cortiq_status status, const std::string& message) noexcept;

/// CORTIQ_OK, or the code and sentence of a failure.
cortiq_status finish(const Status& status) noexcept;

/// Runs `body`, which returns a Status or a cortiq_status. No exception passes the border.
template <class Body>
cortiq_status guarded(Body&& body) noexcept {
  try {
    if constexpr (std::is_same_v<decltype(body()), Status>)
      return finish(body());
    else
      return body();
  } catch (const std::bad_alloc&) {
    return fail(CORTIQ_NO_MEMORY, "there is not enough memory");
  } catch (const std::exception& error) {
    return fail(CORTIQ_INTERNAL, std::string("internal error: ") + error.what());
  }
}

/// The caller's structure over the defaults: an older caller's is shorter, a newer one's has fields not known here.
template <class Options>
Options options_or(const Options* given, const Options& defaults) {
  Options out = defaults;
  if (given)
    std::memcpy(&out, given, std::min(given->size, sizeof(Options)));
  out.size = sizeof(Options);
  return out;
}

/// Fills a structure of the caller's as far as it reaches.
template <class Result>
void fill(Result* out, const Result& values) {
  const size_t size = out->size;
  std::memcpy(out, &values, std::min(size, sizeof(Result)));
  out->size = size;
}

/// Fills a buffer of the caller's with what fits.
template <class From, class T>
void fill(const From& from, T* out, size_t capacity, size_t* count) {
  if (out)
    std::copy_n(from.begin(), std::min(capacity, from.size()), out);
  if (count)
    *count = from.size();
}

} // namespace cortiq::api
