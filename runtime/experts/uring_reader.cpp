// Reads with io_uring: whoever needs an expert submits the read itself, one thread takes what is complete.

#include "runtime/experts/reader_kinds.h"

#ifndef CORTIQ_HAVE_LIBURING

namespace cortiq::runtime {

std::unique_ptr<UnitReader> make_uring_reader(UnitFile&, UnitReader::Done&) {
  return nullptr;
}

} // namespace cortiq::runtime

#else

#include <algorithm>
#include <array>
#include <cerrno>
#include <liburing.h>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace cortiq::runtime {
namespace {

constexpr uint64_t kStop = UINT64_MAX;

/// From here on the ring reads, and does nothing else for whoever may get hold of it: filters of system calls do not
/// see what goes through it.
bool restrict_to_reading(io_uring& ring) {
  std::array<io_uring_restriction, 2> allowed{};
  for (size_t i = 0; i < allowed.size(); ++i) {
    allowed[i].opcode = IORING_RESTRICTION_SQE_OP;
    allowed[i].sqe_op = i == 0 ? IORING_OP_READ : IORING_OP_NOP;
  }
  return io_uring_register_restrictions(&ring, allowed.data(), allowed.size()) == 0 &&
         io_uring_enable_rings(&ring) == 0;
}

bool open_ring(io_uring& ring) {
  if (io_uring_queue_init(2 * UnitReader::kMostReads, &ring, IORING_SETUP_R_DISABLED) != 0)
    return false;
  io_uring_probe* probe = io_uring_get_probe_ring(&ring);
  const bool reads = probe && io_uring_opcode_supported(probe, IORING_OP_READ);
  io_uring_free_probe(probe);
  if (reads && restrict_to_reading(ring))
    return true;
  io_uring_queue_exit(&ring);
  return false;
}

class UringReader final : public UnitReader {
public:
  /// Takes the ring over.
  UringReader(UnitFile& file, Done& done, const io_uring& ring) : ring_(ring) {
    for (uint32_t i = 0; i < kMostReads; ++i)
      free_[i] = i;
    free_count_ = kMostReads;
    reaper_ = std::thread([this] { reap(); }); // throws before anything is taken over
    file_.emplace(std::move(file));
    done_ = std::move(done);
  }

  ~UringReader() override {
    {
      std::lock_guard lock(mutex_);
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      io_uring_prep_nop(entry);
      io_uring_sqe_set_data64(entry, kStop);
      io_uring_submit(&ring_);
    }
    reaper_.join();
    io_uring_queue_exit(&ring_);
  }

  void start(const UnitRead& read) override {
    std::lock_guard lock(mutex_);
    const uint32_t slot = free_[--free_count_];
    reads_[slot] = {read, 0};
    submit(slot);
  }

  const char* name() const override { return "io_uring"; }

private:
  struct Pending {
    UnitRead read;
    uint64_t got = 0;
  };

  // The ring has twice as many entries as reads may be under way: there is always one.
  void submit(uint32_t slot) {
    const Pending& p = reads_[slot];
    const uint64_t from = UnitFile::resume_at(p.got);
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read(entry, file_->descriptor(), p.read.to + from, static_cast<unsigned>(p.read.bytes - from),
                       p.read.offset + from);
    io_uring_sqe_set_data64(entry, slot);
    io_uring_submit(&ring_);
  }

  void reap() {
    bool stop = false;
    while (true) {
      if (stop) {
        std::lock_guard lock(mutex_);
        if (free_count_ == kMostReads)
          return;
      }
      io_uring_cqe* entry = nullptr;
      if (io_uring_wait_cqe(&ring_, &entry) != 0)
        continue;
      const uint64_t slot = io_uring_cqe_get_data64(entry);
      const int result = entry->res;
      io_uring_cqe_seen(&ring_, entry);
      if (slot == kStop)
        stop = true;
      else
        take(static_cast<uint32_t>(slot), result);
    }
  }

  void take(uint32_t slot, int result) {
    std::unique_lock lock(mutex_);
    Pending& p = reads_[slot];
    const uint64_t reached = result > 0 ? UnitFile::resume_at(p.got) + static_cast<uint64_t>(result) : p.got;
    const bool more = reached > p.got;
    p.got = std::max(p.got, reached);
    if (result == -EINTR || result == -EAGAIN || (more && p.got < p.read.needed)) {
      submit(slot);
      return;
    }
    const UnitRead read = p.read;
    const uint64_t got = p.got;
    free_[free_count_++] = slot;
    lock.unlock();
    file_->forget(read);
    done_(read.unit, file_->verdict(read, got, result < 0 ? -result : 0));
  }

  std::optional<UnitFile> file_; // set before the first read
  Done done_;
  io_uring ring_;
  std::mutex mutex_; // of the submission side and of what follows
  std::array<Pending, kMostReads> reads_;
  std::array<uint32_t, kMostReads> free_{};
  uint32_t free_count_ = 0;
  std::thread reaper_;
};

} // namespace

std::unique_ptr<UnitReader> make_uring_reader(UnitFile& file, UnitReader::Done& done) {
  io_uring ring;
  if (!open_ring(ring))
    return nullptr;
  try {
    return std::make_unique<UringReader>(file, done, ring);
  } catch (const std::system_error&) { // the system refuses a thread
    io_uring_queue_exit(&ring);
    return nullptr;
  }
}

} // namespace cortiq::runtime

#endif
