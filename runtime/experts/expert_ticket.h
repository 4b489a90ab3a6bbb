#pragma once

// A session's side of the expert store.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "formats/status.h"

namespace cortiq::runtime {

class ExpertStep;
class ExpertStore;

/// One matrix of the experts that a step uses: in which order, and how far the work on each is.
class ExpertTicket {
public:
  /// The expert at `position` of the order of work.
  uint32_t expert(uint64_t position) const { return order_[position]; }
  /// Experts in the order of work.
  uint32_t count() const { return count_; }

private:
  friend class ExpertStep;
  friend class ExpertStore;

  enum class Entry : uint8_t { kWaiting, kPinned, kDone };
  struct Work {
    std::atomic<uint32_t> items_left{0};
    std::atomic<Entry> entry{Entry::kWaiting};
  };

  ExpertStep* owner_ = nullptr;
  uint32_t matrix_ = 0;
  std::atomic<uint64_t> step_{0}; ///< in which it was opened last
  uint32_t count_ = 0;
  uint32_t next_ = 0;                  ///< first position that is not pinned yet; the store's lock guards it
  uint32_t unfinished_ = 0;            ///< the same
  std::vector<uint32_t> used_, order_; ///< [experts], `count_` of them; by number, and in the order of work
  std::unique_ptr<Work[]> work_;
};

/// The experts of one session, from step to step. begin() and end() are for the session; the rest for the workers.
class ExpertStep {
public:
  explicit ExpertStep(ExpertStore& store);
  ~ExpertStep();
  ExpertStep(const ExpertStep&) = delete;
  ExpertStep& operator=(const ExpertStep&) = delete;

  void begin(uint64_t tokens);
  /// The first failure of the step's reads; its results are then worthless.
  Status end();

  /// Opens the ticket for `matrix` unless another worker has: `used` experts, each with `items` items of work. Items
  /// have to be worked on in the order of their positions, but for those that are worked on at the same time.
  ExpertTicket& open(uint32_t matrix, std::span<const int32_t> used, uint32_t items);
  /// The packed matrix of the expert at `position`, once it is there; null when it could not be read, and for a
  /// position that the ticket does not have.
  const uint8_t* bytes(ExpertTicket& ticket, uint64_t position);
  /// Says that `count` items of `position` are done.
  void finish(ExpertTicket& ticket, uint64_t position, uint32_t count);

  /// Room for the experts that the router of `layer` would choose; they are read ahead once the layer before is served.
  /// For one worker.
  std::vector<int32_t>& predicted(uint32_t layer) { return predicted_[layer]; }

private:
  friend class ExpertStore;
  void fail(const Status& status);

  ExpertStore& store_;
  uint64_t number_ = 0;
  uint64_t blocked_in_ = 0; ///< the store's round in which a unit of this session found no place
  std::atomic<bool> failed_{false};
  std::mutex mutex_; ///< of opening, and of the failure
  Status failure_;
  std::vector<ExpertTicket> tickets_;
  std::vector<std::vector<int32_t>> predicted_;
};

} // namespace cortiq::runtime
