#include "formats/part_files.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr char kSuffix[] = ".part-XXXXXX";
constexpr size_t kMostParts = 4096;
constexpr int kMostTries = 16;

/// Paths that signals remove. Whoever takes a pointer out owns it, so that the handler, which may run in any thread,
/// and unwatch_part() never use one string at the same time.
std::array<std::atomic<char*>, kMostParts> g_parts;
std::mutex g_mutex; // among writers; the handler takes no lock

void remove_parts() {
  static char* folders[kMostParts];
  size_t count = 0;
  for (std::atomic<char*>& part : g_parts)
    if (char* path = part.exchange(nullptr); path != nullptr && unlink(path) != 0)
      folders[count++] = path;
  while (count > 0)
    rmdir(folders[--count]);
}

void on_end(int number) {
  remove_parts();
  // The handler was installed for one delivery; the default action now ends the program, and its parent sees why.
  raise(number);
}

/// Whether this is a part of `path` by its name.
bool is_part_of(const std::string& name, const std::string& stem) {
  const std::string prefix = stem + std::string(kSuffix, sizeof kSuffix - 7);
  return name.size() == prefix.size() + 6 && name.starts_with(prefix);
}

/// Removes the parts of `path` whose writers have ended: nobody holds their locks.
void remove_abandoned(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::filesystem::path folder = whole.has_parent_path() ? whole.parent_path() : ".";
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_part_of(it->path().filename().string(), whole.filename().string()))
      continue;
    const int fd = open(it->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
      continue;
    std::error_code ignored; // another program may remove it at the same time
    struct stat info{};
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)))
      std::filesystem::remove_all(it->path(), ignored);
    close(fd);
  }
}

/// One part, locked. Between its creation and its lock another program may have taken it for abandoned.
int try_create(std::string& name, bool folder) {
  int fd = -1;
  if (!folder)
    fd = mkostemp(name.data(), O_CLOEXEC);
  else if (mkdtemp(name.data()) != nullptr)
    fd = open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return -1;
  flock(fd, LOCK_EX | LOCK_NB); // file systems without locks only lose the cleaning
  struct stat named{}, opened{};
  if (fstat(fd, &opened) == 0 && stat(name.c_str(), &named) == 0 && named.st_ino == opened.st_ino)
    return fd;
  close(fd);
  errno = EAGAIN;
  return -1;
}

} // namespace

StatusOr<Part> create_part(const std::string& path, bool folder) {
  remove_abandoned(path);
  Part out;
  for (int i = 0; i < kMostTries && out.fd < 0; ++i) {
    out.path = path + kSuffix;
    out.fd = try_create(out.path, folder);
    if (out.fd < 0 && errno != EAGAIN)
      break;
  }
  if (out.fd < 0)
    return io_error("cannot write " + quote(path) + ": " + std::strerror(errno));
  watch_part(out.path);
  // Parts are made private; the result gets the mode that an ordinary open would have given it.
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(out.fd, (folder ? 0777 : 0666) & ~mask) != 0) {
    const int why = errno;
    close(out.fd);
    std::remove(out.path.c_str());
    unwatch_part(out.path);
    return io_error("cannot write " + quote(path) + ": " + std::strerror(why));
  }
  return out;
}

void watch_part(const std::string& path) {
  const std::lock_guard lock(g_mutex);
  for (std::atomic<char*>& part : g_parts)
    if (part.load() == nullptr) {
      part.store(strdup(path.c_str()));
      return;
    }
}

void unwatch_part(const std::string& path) {
  const std::lock_guard lock(g_mutex);
  for (std::atomic<char*>& part : g_parts) {
    char* mine = part.exchange(nullptr); // the handler cannot take it while it is compared
    if (mine == nullptr)
      continue;
    if (path == mine) {
      std::free(mine);
      return;
    }
    part.store(mine);
  }
}

void prepare_to_write() {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN)
      continue;
    struct sigaction action{};
    action.sa_handler = on_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

} // namespace cortiq::formats
