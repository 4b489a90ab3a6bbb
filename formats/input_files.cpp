#include "formats/input_files.h"

#include <atomic>
#include <compare>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <utility>

#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr char kSignature[] = ".sig";
constexpr size_t kTagLength = sizeof "-00001-of-00001" - 1;

/// What makes a file the same by all its names. Numbers of files are used again, so the time when it was made counts,
/// where the file system knows it.
struct Identity {
  uint64_t device = 0, number = 0;
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  auto operator<=>(const Identity&) const = default;
};

std::mutex g_mutex;
std::set<Identity> g_inputs;
std::atomic<bool> g_protected = false;

std::optional<Identity> examine(int fd, const char* path, int flags) {
  struct statx info{};
  if (statx(fd, path, flags, STATX_INO | STATX_BTIME, &info) != 0)
    return std::nullopt;
  Identity out{uint64_t{info.stx_dev_major} << 32 | info.stx_dev_minor, info.stx_ino};
  if ((info.stx_mask & STATX_BTIME) != 0) {
    out.seconds = info.stx_btime.tv_sec;
    out.nanoseconds = info.stx_btime.tv_nsec;
  }
  return out;
}

std::optional<Identity> examine(const std::string& path) {
  return examine(AT_FDCWD, path.c_str(), 0);
}

void remember(const std::optional<Identity>& file) {
  const std::lock_guard lock(g_mutex);
  if (file)
    g_inputs.insert(*file);
}

/// "-00002-of-00003"
std::string tag(unsigned number, unsigned count) {
  char text[40];
  std::snprintf(text, sizeof text, "-%05u-of-%05u", number, count);
  return text;
}

/// All parts of the name `path`; itself where it has no number.
std::vector<std::string> parts_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot < kTagLength)
    return {path};
  const std::string stem = path.substr(0, dot - kTagLength), extension = path.substr(dot);
  unsigned number = 0, count = 0;
  if (std::sscanf(path.c_str() + dot - kTagLength, "-%5u-of-%5u", &number, &count) != 2 ||
      path != stem + tag(number, count) + extension)
    return {path};
  std::vector<std::string> parts = {path};
  for (unsigned k = 1; k <= count; ++k) {
    std::string part = stem + tag(k, count) + extension;
    if (!examine(part))
      break; // the model is not whole, its reader will say so
    if (k != number)
      parts.push_back(std::move(part));
  }
  return parts;
}

} // namespace

void remember_input(int fd) {
  remember(examine(fd, "", AT_EMPTY_PATH));
}

void remember_input(const std::string& path) {
  remember(examine(path));
}

std::vector<std::string> model_files(const std::string& path) {
  std::vector<std::string> files;
  const auto add = [&](std::string name) {
    if (examine(name))
      files.push_back(std::move(name));
  };
  for (const std::string& part : parts_of(path)) {
    add(part);
    add(part + kSignature);
  }
  const size_t slash = path.rfind('/');
  add((slash == std::string::npos ? "" : path.substr(0, slash + 1)) + "tokenizer.json");
  return files;
}

Status check_output(const std::string& output) {
  const auto file = output.empty() ? std::nullopt : examine(output);
  if (!file)
    return {};
  const std::lock_guard lock(g_mutex);
  if (g_inputs.contains(*file))
    return invalid(quote(output) + " is one of the files that are read here; give the result another name");
  return {};
}

void protect_inputs() {
  g_protected = true;
}

Status check_protected(const std::string& output) {
  return g_protected ? check_output(output) : Status();
}

} // namespace cortiq::formats
