#pragma once

// Which experts are in memory. A model loaded with a budget keeps its experts in the file and a part of them in places
// of anonymous memory; this is the one table of both, shared by the model's sessions.
//
// A unit is one matrix of one expert: that is what a stage works on, one after the other, so that any budget is enough
// that holds a few of them. A session's step opens a ticket for each matrix of a layer (see ExpertTicket): the units of
// the experts in use, those in memory first. Units are pinned strictly in the order of the tickets and of the units in
// them, and let go when their last work item is done. What is pinned therefore never waits for what is not, however few
// places there are and however many sessions.
//
// Who goes first when a place is needed is told by a rank: uses counted with decay. With n uses at times t the value of
// a unit at time now is sum of 2^((t - now) / H); its logarithm plus now / H does not change between two uses, so ranks
// never have to be aged. What was read ahead and not yet used ranks above all that is not in use.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "formats/status.h"
#include "runtime/experts/expert_ticket.h"
#include "runtime/experts/slot_pool.h"
#include "runtime/experts/unit_reader.h"

namespace cortiq::runtime {

/// Where a unit stands in the file.
struct UnitExtent {
  uint64_t offset = 0, bytes = 0;
};

/// One matrix of every expert of a layer.
struct ExpertMatrix {
  uint32_t layer = 0; ///< among layers of experts, ascending
  std::vector<UnitExtent> experts;
};

struct ExpertStatistics {
  uint64_t tokens = 0;        ///< that steps were run for
  uint64_t uses = 0;          ///< units that tickets asked for
  uint64_t hits = 0;          ///< of them, in memory since an earlier use
  uint64_t prefetch_hits = 0; ///< of them, there or on their way because the router was asked ahead
  uint64_t reads = 0, bytes_read = 0;
  uint64_t waited_ns = 0; ///< of workers, for reads
};

class ExpertStore {
public:
  /// Places for every pool's units are address space until used. `set_limit` and `attach` come before the first step.
  static StatusOr<std::unique_ptr<ExpertStore>> make(std::vector<ExpertMatrix> matrices);
  ~ExpertStore();

  /// Takes `reader`, whose Done must be this store's complete().
  void attach(std::unique_ptr<UnitReader> reader) { reader_ = std::move(reader); }
  void complete(uint32_t unit, const Status& status);

  /// Bytes of places without which nothing works; bytes of places for all units.
  uint64_t least_bytes() const;
  uint64_t most_bytes() const;
  /// Memory for places; at least least_bytes(). Units that lose theirs are dropped, those in use once they are not.
  void set_limit(uint64_t bytes);

  uint32_t matrix_count() const { return static_cast<uint32_t>(matrices_.size()); }
  uint32_t experts(uint32_t matrix) const { return matrices_[matrix].experts; }
  uint32_t layer_count() const { return static_cast<uint32_t>(layers_.size()); }
  ExpertStatistics statistics() const;
  /// Places that may be filled, and their bytes.
  uint64_t limit_bytes() const;
  const char* reader_name() const { return reader_->name(); }

private:
  friend class ExpertStep;

  enum class State : uint8_t { kAbsent, kReading, kReady, kFailed };
  enum class Source : uint8_t { kNone, kSibling, kPredicted };
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  struct Unit {
    std::atomic<State> state{State::kAbsent};
    Source source = Source::kNone; ///< who asked for the read; none once it was used
    uint32_t matrix = 0, pool = 0;
    uint32_t slot = kNoSlot, pins = 0;
    UnitExtent extent;
    double rank;              ///< of its uses so far
    uint64_t used_in = 0;     ///< ticket number of the latest use
    uint8_t* bytes = nullptr; ///< once ready
  };
  struct Matrix {
    uint32_t layer, experts, first_unit;
    uint64_t opened_in = 0; ///< step
  };

  ExpertStore() = default;
  Status build(std::vector<ExpertMatrix> matrices);

  // What ExpertStep asks for.
  void begin_step(std::span<ExpertTicket> tickets, uint64_t tokens);
  void end_session(std::span<ExpertTicket> tickets);
  void open(ExpertStep& step, ExpertTicket& ticket, std::span<const int32_t> used, uint32_t items_each);
  void finish(ExpertTicket& ticket, uint32_t position);
  Unit& unit(const ExpertTicket& ticket, uint32_t position) {
    return units_[matrices_[ticket.matrix_].first_unit + ticket.order_[position]];
  }
  void wait_for_change(uint64_t seen);
  void wake();
  Status failure();

  // Under the lock.
  void withdraw(std::span<ExpertTicket> tickets);
  void pump();
  void pump_prefetch();
  bool pin(Unit& unit);
  void unpin(Unit& unit);
  bool start_read(Unit& unit, Source source, double bound);
  void settle(Unit& unit);
  void release(Unit& unit);
  void request_siblings(const ExpertTicket& ticket);
  void request_predicted(ExpertStep& step, uint32_t layer);
  bool in_use(const Matrix& matrix) const;
  void queue(uint32_t matrix, uint32_t expert, Source source);
  void count_use(Unit& unit);
  double now() const;
  uint32_t number(const Unit& unit) const { return static_cast<uint32_t>(&unit - units_.get()); }

  std::vector<Matrix> matrices_;
  std::vector<std::vector<uint32_t>> layers_; ///< matrices of each
  std::unique_ptr<Unit[]> units_;
  uint32_t unit_count_ = 0;
  std::vector<SlotPool> pools_;
  std::unique_ptr<UnitReader> reader_;

  mutable std::mutex mutex_;
  std::vector<ExpertTicket*> open_; ///< by age
  struct Ahead {
    uint32_t unit;
    Source source;
  };
  std::deque<Ahead> ahead_;
  uint32_t reading_ = 0;
  uint64_t steps_ = 0, tickets_ = 0, pumps_ = 0;
  bool stopping_ = false;
  Status failure_; ///< the latest
  ExpertStatistics statistics_;
  std::atomic<uint64_t> waited_ns_{0};

  alignas(64) std::atomic<uint64_t> changes_{0};
  std::atomic<uint32_t> parked_{0};
};

/// The statistics in lines, for people.
std::string describe(const ExpertStore& store);

} // namespace cortiq::runtime
