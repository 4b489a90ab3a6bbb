// Reads with a few threads, each waiting in pread(2): for kernels without io_uring.

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include "runtime/experts/reader_kinds.h"

namespace cortiq::runtime {
namespace {

// Enough for a drive to work on; they sleep nearly always.
constexpr unsigned kThreads = 8;

class ThreadReader final : public UnitReader {
public:
  ThreadReader(UnitFile file, Done done) : file_(std::move(file)), done_(std::move(done)) {
    for (unsigned i = 0; i < kThreads; ++i) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break; // the standard library reports a refused thread this way only; fewer do, see start()
      }
    }
  }

  ~ThreadReader() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_)
      thread.join();
  }

  bool works() const { return !threads_.empty(); }

  void start(const UnitRead& read) override {
    {
      std::lock_guard lock(mutex_);
      queue_.push_back(read);
    }
    changed_.notify_one();
  }

  const char* name() const override { return "threads"; }

private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty())
        return;
      const UnitRead read = queue_.front();
      queue_.pop_front();
      lock.unlock();
      run(read);
      lock.lock();
    }
  }

  void run(const UnitRead& read) {
    uint64_t got = 0;
    int error = 0;
    while (got < read.needed) {
      const uint64_t from = UnitFile::resume_at(got);
      const ssize_t n =
          pread(file_.descriptor(), read.to + from, read.bytes - from, static_cast<off_t>(read.offset + from));
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        error = errno;
      if (n <= 0 || from + static_cast<uint64_t>(n) <= got)
        break;
      got = from + static_cast<uint64_t>(n);
    }
    file_.forget(read);
    done_(read.unit, file_.verdict(read, got, error));
  }

  UnitFile file_;
  Done done_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UnitRead> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

} // namespace

std::unique_ptr<UnitReader> make_thread_reader(UnitFile file, UnitReader::Done done) {
  auto reader = std::make_unique<ThreadReader>(std::move(file), std::move(done));
  return reader->works() ? std::move(reader) : nullptr;
}

StatusOr<std::unique_ptr<UnitReader>> open_unit_reader(const std::string& path, std::span<const uint8_t> first_page,
                                                       WeightHashes hashes, UnitReader::Done done, ReaderKind kind) {
  CORTIQ_ASSIGN_OR_RETURN(UnitFile file, UnitFile::open(path, first_page, std::move(hashes)));
  if (kind != ReaderKind::kThreads)
    if (std::unique_ptr<UnitReader> reader = make_uring_reader(file, done))
      return reader;
  if (kind == ReaderKind::kUring)
    return unsupported("this kernel or build offers no io_uring");
  if (std::unique_ptr<UnitReader> reader = make_thread_reader(std::move(file), std::move(done)))
    return reader;
  return io_error("the system refuses the threads that read experts; leave out --memory");
}

} // namespace cortiq::runtime
