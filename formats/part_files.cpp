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
#include <string_view>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "formats/input_files.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

// OUT.part-3f9a01.cortiq: no name that anybody else gives.
constexpr std::string_view kBefore = ".part-";
constexpr std::string_view kAfter = ".cortiq";
constexpr size_t kDigits = 6;
/// Stands in each of our folders for as long as they live; its lock is the folder's.
constexpr char kLockName[] = ".cortiq-part";
constexpr size_t kMostParts = 4096;
constexpr int kMostTries = 16;

/// Paths that signals remove. Whoever takes a pointer out owns it, so that the handler, which may run in any thread,
/// and unwatch_part() never use one string at the same time.
std::array<std::atomic<char*>, kMostParts> g_parts;
std::mutex g_mutex; // among writers; the handler takes no lock

void on_end(int number) {
  remove_watched_parts();
  // The handler was installed for one delivery; the default action now ends the program, and its parent sees why.
  raise(number);
}

/// Whether this is a part of `path` by its name.
bool is_part_of(std::string_view name, const std::string& stem) {
  if (name.size() != stem.size() + kBefore.size() + kDigits + kAfter.size() || !name.starts_with(stem) ||
      !name.ends_with(kAfter))
    return false;
  name = name.substr(stem.size(), kBefore.size() + kDigits);
  return name.starts_with(kBefore) &&
         name.find_first_not_of("0123456789abcdef", kBefore.size()) == std::string_view::npos;
}

std::string lock_of(const std::string& folder) {
  return folder + "/" + kLockName;
}

/// Removes one of our folders: the files in it, the lock last, and nothing below. Whatever else lies there keeps it.
void remove_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!std::filesystem::is_regular_file(it->symlink_status(error)))
      return;
    if (it->path().filename() != kLockName)
      files.push_back(it->path());
  }
  files.push_back(lock_of(folder.string()));
  for (const std::filesystem::path& file : files)
    unlink(file.c_str()); // another program may remove it at the same time
  rmdir(folder.c_str());
}

/// Removes the parts of `path` whose writers have ended: nobody holds their locks.
void remove_abandoned(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::filesystem::path folder = whole.has_parent_path() ? whole.parent_path() : ".";
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_part_of(it->path().filename().string(), whole.filename().string()))
      continue;
    std::error_code gone;
    const bool is_folder = std::filesystem::is_directory(it->symlink_status(gone));
    const std::string lock = is_folder ? lock_of(it->path().string()) : it->path().string();
    const int fd = open(lock.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
      if (is_folder) // killed before it got its lock: it is empty, and any that is not stays
        rmdir(it->path().c_str());
      continue;
    }
    struct stat info{};
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
      if (is_folder)
        remove_folder(it->path());
      else
        unlink(lock.c_str());
    }
    close(fd);
  }
}

std::string random_digits() {
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<uint32_t>(getpid());
  char text[9];
  std::snprintf(text, sizeof text, "%08x", number);
  return std::string(text, kDigits);
}

/// Holds signals back from this thread, so that none ends the program between the creation of a part and its watch.
class SignalsLater {
public:
  SignalsLater() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsLater() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsLater(const SignalsLater&) = delete;
  SignalsLater& operator=(const SignalsLater&) = delete;

private:
  sigset_t before_;
};

/// One part, locked. Between its creation and its lock another program may have taken it for abandoned.
int try_create(const std::string& name, bool folder) {
  if (folder && mkdir(name.c_str(), 0777) != 0)
    return -1;
  const std::string locked = folder ? lock_of(name) : name;
  const int fd = open(locked.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) {
    if (folder && errno == ENOENT)
      errno = EEXIST;
    return -1;
  }
  flock(fd, LOCK_EX | LOCK_NB); // file systems without locks only lose the cleaning
  struct stat named{}, opened{};
  if (fstat(fd, &opened) == 0 && stat(locked.c_str(), &named) == 0 && named.st_ino == opened.st_ino)
    return fd;
  close(fd);
  errno = EEXIST;
  return -1;
}

} // namespace

void remove_watched_parts() {
  static char* folders[kMostParts];
  size_t count = 0;
  for (std::atomic<char*>& part : g_parts)
    if (char* path = part.exchange(nullptr); path != nullptr && unlink(path) != 0)
      folders[count++] = path;
  while (count > 0)
    rmdir(folders[--count]);
}

StatusOr<Part> create_part(const std::string& path, bool folder) {
  remove_abandoned(path);
  const SignalsLater later;
  Part out;
  for (int i = 0; i < kMostTries && out.fd < 0; ++i) {
    out.path = path;
    out.path.append(kBefore).append(random_digits()).append(kAfter);
    out.fd = try_create(out.path, folder);
    if (out.fd < 0 && errno != EEXIST)
      break;
  }
  if (out.fd < 0)
    return io_error("cannot write " + quote(path) + ": " + std::strerror(errno));
  watch_part(out.path);
  if (folder)
    watch_part(lock_of(out.path));
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
  const std::string its_lock = lock_of(path); // a folder's goes with it
  const std::lock_guard lock(g_mutex);
  for (std::atomic<char*>& part : g_parts) {
    char* mine = part.exchange(nullptr); // the handler cannot take it while it is compared
    if (mine == nullptr)
      continue;
    if (path == mine || its_lock == mine) {
      std::free(mine);
      continue;
    }
    part.store(mine);
  }
}

void prepare_to_write() {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, nullptr);
  protect_inputs();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU}) {
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
