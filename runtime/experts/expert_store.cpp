#include "runtime/experts/expert_store.h"

#include <algorithm>
#include <cmath>

#include "formats/artifact/kernel_abi.h"
#include "formats/checked_math.h"
#include "formats/layout/layout.h"
#include "runtime/executor/futex.h"

namespace cortiq::runtime {
namespace {

// Steps after which a use counts half.
constexpr double kHalfLife = 32;
// Ranks of units in use grow with the steps; what was read ahead stands above all of them.
constexpr double kReadAhead = 1e15;
// Reads under way. Drives reach their bandwidth with a few; what is only guessed leaves room for what is needed.
constexpr uint32_t kMostSure = 32;
constexpr uint32_t kMostGuessed = 12;
static_assert(kMostSure <= UnitReader::kMostReads);
// A matrix that no step opened for so long is not read ahead.
constexpr uint64_t kStepsInUse = 8;
// Of four experts that a router names ahead, those that are read.
constexpr uint64_t kGuessedOf4 = 3;
// One place is read into while another is worked on.
constexpr uint32_t kLeastSlots = 2;
// Units share a pool when none wastes more than an eighth of a place.
constexpr uint64_t kPoolSpread = 8;

uint64_t first_byte(const UnitExtent& extent) {
  return extent.offset / kReadAlignment * kReadAlignment;
}
/// What a unit's place holds: whole pages around it and around the bytes behind it that kernels may read.
uint64_t place_bytes(const UnitExtent& extent) {
  const uint64_t end = extent.offset + extent.bytes + formats::kLayoutTailPadding;
  return formats::ceil_div(end, kReadAlignment) * kReadAlignment - first_byte(extent);
}

} // namespace

StatusOr<std::unique_ptr<ExpertStore>> ExpertStore::make(std::vector<ExpertMatrix> matrices) {
  std::unique_ptr<ExpertStore> store(new ExpertStore());
  if (Status status = store->build(std::move(matrices)); !status.ok())
    return status;
  return store;
}

Status ExpertStore::build(std::vector<ExpertMatrix> matrices) {
  for (const ExpertMatrix& matrix : matrices) {
    if (layers_.empty() || matrices_.back().layer != matrix.layer)
      layers_.emplace_back();
    layers_.back().push_back(static_cast<uint32_t>(matrices_.size()));
    matrices_.push_back({matrix.layer, static_cast<uint32_t>(matrix.experts.size()), unit_count_, 0});
    unit_count_ += static_cast<uint32_t>(matrix.experts.size());
  }
  for (uint32_t layer = 0; layer < layers_.size(); ++layer)
    for (const uint32_t m : layers_[layer])
      matrices_[m].layer = layer;
  units_.reset(new Unit[unit_count_]);
  std::vector<uint32_t> by_size;
  for (uint32_t m = 0; m < matrices_.size(); ++m)
    for (uint32_t e = 0; e < matrices_[m].experts; ++e) {
      const uint32_t n = matrices_[m].first_unit + e;
      units_[n].matrix = m;
      units_[n].extent = matrices[m].experts[e];
      units_[n].rank = -kReadAhead;
      by_size.push_back(n);
    }
  std::sort(by_size.begin(), by_size.end(), [&](uint32_t a, uint32_t b) {
    const uint64_t left = place_bytes(units_[a].extent), right = place_bytes(units_[b].extent);
    return left != right ? left > right : a < b;
  });
  for (size_t begin = 0, end = 0; begin < by_size.size(); begin = end) {
    const uint64_t largest = place_bytes(units_[by_size[begin]].extent);
    for (; end < by_size.size() && place_bytes(units_[by_size[end]].extent) >= largest - largest / kPoolSpread; ++end)
      units_[by_size[end]].pool = static_cast<uint32_t>(pools_.size());
    pools_.emplace_back(largest, static_cast<uint32_t>(end - begin));
    if (pools_.back().empty())
      return io_error("there is no address space for the experts' places");
  }
  open_.reserve(64);
  return {};
}

ExpertStore::~ExpertStore() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  reader_.reset();
}

uint64_t ExpertStore::least_bytes() const {
  uint64_t bytes = 0;
  for (const SlotPool& pool : pools_)
    bytes += pool.slot_bytes() * std::min(kLeastSlots, pool.units());
  return bytes;
}

uint64_t ExpertStore::most_bytes() const {
  uint64_t bytes = 0;
  for (const SlotPool& pool : pools_)
    bytes += pool.slot_bytes() * pool.units();
  return bytes;
}

void ExpertStore::set_limit(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  // Each pool gets the same share of its units, so that no kind of matrix is starved.
  const uint64_t least = least_bytes(), rest = bytes > least ? bytes - least : 0;
  const double share =
      std::min(1.0, static_cast<double>(rest) / static_cast<double>(std::max<uint64_t>(1, most_bytes() - least)));
  for (uint32_t p = 0; p < pools_.size(); ++p) {
    SlotPool& pool = pools_[p];
    const uint32_t floor = std::min(kLeastSlots, pool.units()), before = pool.limit();
    pool.set_limit(floor + static_cast<uint32_t>(share * (pool.units() - floor)));
    for (uint32_t slot = pool.limit(); slot < pool.units(); ++slot)
      if (pool.holder(slot) != SlotPool::kNobody)
        settle(units_[pool.holder(slot)]);
      else if (slot < before)
        pool.drop(slot);
  }
}

uint64_t ExpertStore::limit_bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const SlotPool& pool : pools_)
    bytes += pool.slot_bytes() * pool.limit();
  return bytes;
}

ExpertStatistics ExpertStore::statistics() const {
  std::lock_guard lock(mutex_);
  ExpertStatistics out = statistics_;
  out.waited_ns = waited_ns_.load(std::memory_order_relaxed);
  return out;
}

Status ExpertStore::failure() {
  std::lock_guard lock(mutex_);
  return failure_;
}

double ExpertStore::now() const {
  return static_cast<double>(steps_) / kHalfLife;
}

void ExpertStore::begin_step(std::span<ExpertTicket> tickets, uint64_t tokens) {
  std::lock_guard lock(mutex_);
  withdraw(tickets);
  ++steps_;
  statistics_.tokens += tokens;
}

void ExpertStore::end_session(std::span<ExpertTicket> tickets) {
  std::lock_guard lock(mutex_);
  withdraw(tickets);
}

/// Whoever used the tickets is done with them, finished or not.
void ExpertStore::withdraw(std::span<ExpertTicket> tickets) {
  for (ExpertTicket& ticket : tickets)
    if (ticket.unfinished_ != 0) {
      for (uint32_t i = 0; i < ticket.count_; ++i)
        if (ticket.work_[i].entry.exchange(ExpertTicket::Entry::kDone) == ExpertTicket::Entry::kPinned)
          unpin(unit(ticket, i));
      ticket.unfinished_ = 0;
      std::erase(open_, &ticket);
    }
}

void ExpertStore::count_use(Unit& unit) {
  ++statistics_.uses;
  const State state = unit.state.load(std::memory_order_relaxed);
  if (state == State::kReading || state == State::kReady) {
    statistics_.hits += unit.source == Source::kNone;
    statistics_.prefetch_hits += unit.source == Source::kPredicted;
  }
  unit.source = Source::kNone;
  unit.rank = now() + std::log2(1 + std::exp2(unit.rank - now()));
  unit.used_in = tickets_;
}

void ExpertStore::open(ExpertStep& step, ExpertTicket& ticket, std::span<const int32_t> used, uint32_t items_each) {
  std::lock_guard lock(mutex_);
  ++tickets_;
  Matrix& matrix = matrices_[ticket.matrix_];
  matrix.opened_in = steps_;
  uint32_t known = 0;
  for (const int32_t expert : used)
    if (expert >= 0 && static_cast<uint32_t>(expert) < matrix.experts && known < matrix.experts)
      ticket.used_[known++] = static_cast<uint32_t>(expert);
  ticket.count_ = 0;
  // What is there goes first, then what is on its way, then the rest as it stands in the file.
  for (const State wanted : {State::kReady, State::kReading, State::kAbsent})
    for (uint32_t i = 0; i < known; ++i) {
      const State state = units_[matrix.first_unit + ticket.used_[i]].state.load(std::memory_order_relaxed);
      if (state == wanted || (wanted == State::kAbsent && state == State::kFailed))
        ticket.order_[ticket.count_++] = ticket.used_[i];
    }
  for (uint32_t i = 0; i < ticket.count_; ++i) {
    ticket.work_[i].items_left.store(items_each, std::memory_order_relaxed);
    ticket.work_[i].entry.store(ExpertTicket::Entry::kWaiting, std::memory_order_relaxed);
    count_use(unit(ticket, i));
  }
  // What was read ahead for this matrix in vain loses its privilege.
  for (uint32_t e = 0; e < matrix.experts; ++e)
    if (Unit& other = units_[matrix.first_unit + e]; other.used_in != tickets_ && other.source != Source::kNone) {
      other.source = Source::kNone;
      settle(other);
    }
  std::erase_if(ahead_, [&](const Ahead& entry) { return units_[entry.unit].matrix == ticket.matrix_; });
  ticket.next_ = 0;
  ticket.unfinished_ = ticket.count_;
  if (ticket.count_ == 0) // a plan that something was laid over
    return;
  open_.push_back(&ticket);
  if (layers_[matrix.layer].front() == ticket.matrix_ && !step.failed_.load(std::memory_order_relaxed)) {
    request_siblings(ticket);
    request_predicted(step, matrix.layer + 1);
  }
  pump();
}

void ExpertStore::finish(ExpertTicket& ticket, uint32_t position) {
  {
    std::lock_guard lock(mutex_);
    ExpertTicket::Work& work = ticket.work_[position];
    const auto before = work.entry.exchange(ExpertTicket::Entry::kDone, std::memory_order_relaxed);
    if (before == ExpertTicket::Entry::kPinned)
      unpin(unit(ticket, position));
    if (--ticket.unfinished_ == 0)
      std::erase(open_, &ticket);
    pump();
  }
  wake();
}

void ExpertStore::complete(uint32_t number, const Status& status) {
  {
    std::lock_guard lock(mutex_);
    --reading_;
    Unit& unit = units_[number];
    if (!status.ok())
      failure_ = status;
    unit.state.store(status.ok() ? State::kReady : State::kFailed, std::memory_order_release);
    settle(unit);
    pump();
  }
  wake();
}

void ExpertStore::pump() {
  ++pumps_;
  bool all_pinned = true;
  for (ExpertTicket* ticket : open_) {
    ExpertStep& owner = *ticket->owner_;
    if (owner.failed_.load(std::memory_order_relaxed)) {
      ticket->next_ = ticket->count_;
      continue;
    }
    // The tickets of a session are served in their order.
    if (owner.blocked_in_ == pumps_)
      continue;
    for (; ticket->next_ < ticket->count_; ++ticket->next_) {
      auto& entry = ticket->work_[ticket->next_].entry;
      if (entry.load(std::memory_order_relaxed) == ExpertTicket::Entry::kDone)
        continue;
      if (!pin(unit(*ticket, ticket->next_))) {
        owner.blocked_in_ = pumps_;
        all_pinned = false;
        break;
      }
      entry.store(ExpertTicket::Entry::kPinned, std::memory_order_release);
    }
  }
  if (all_pinned)
    pump_prefetch();
}

void ExpertStore::pump_prefetch() {
  while (!ahead_.empty()) {
    const Ahead next = ahead_.front();
    Unit& unit = units_[next.unit];
    if (unit.state.load(std::memory_order_relaxed) == State::kAbsent) {
      if (reading_ >= (next.source == Source::kSibling ? kMostSure : kMostGuessed))
        return;
      // Never in the place of what was read ahead before it.
      if (!start_read(unit, next.source, kReadAhead / 2) && next.source == Source::kSibling)
        return;
    }
    ahead_.pop_front();
  }
}

bool ExpertStore::pin(Unit& unit) {
  if (unit.state.load(std::memory_order_relaxed) == State::kAbsent) {
    if (reading_ >= kMostSure || !start_read(unit, Source::kNone, SlotPool::kBusy))
      return false;
  }
  ++unit.pins;
  if (unit.slot != kNoSlot)
    pools_[unit.pool].set_rank(unit.slot, SlotPool::kBusy);
  return true;
}

void ExpertStore::unpin(Unit& unit) {
  --unit.pins;
  settle(unit);
}

bool ExpertStore::start_read(Unit& unit, Source source, double bound) {
  if (stopping_)
    return false;
  SlotPool& pool = pools_[unit.pool];
  const std::optional<uint32_t> slot = pool.lowest(bound);
  if (!slot)
    return false;
  if (pool.holder(*slot) != SlotPool::kNobody)
    release(units_[pool.holder(*slot)]);
  pool.give(*slot, number(unit));
  unit.slot = *slot;
  unit.source = source;
  const uint64_t from = first_byte(unit.extent), bytes = place_bytes(unit.extent);
  unit.bytes = pool.address(*slot) + (unit.extent.offset - from);
  unit.state.store(State::kReading, std::memory_order_relaxed);
  ++reading_;
  ++statistics_.reads;
  statistics_.bytes_read += bytes;
  reader_->start({from, bytes, unit.extent.offset + unit.extent.bytes - from, pool.address(*slot), number(unit)});
  return true;
}

/// Gives a unit that nobody uses and nobody reads its rank, or drops it where it may not stay.
void ExpertStore::settle(Unit& unit) {
  const State state = unit.state.load(std::memory_order_relaxed);
  if (unit.pins != 0 || state == State::kAbsent || state == State::kReading)
    return;
  SlotPool& pool = pools_[unit.pool];
  if (state == State::kFailed || unit.slot >= pool.limit()) {
    release(unit);
    return;
  }
  pool.set_rank(unit.slot, unit.source == Source::kNone ? unit.rank : kReadAhead + now());
}

void ExpertStore::release(Unit& unit) {
  SlotPool& pool = pools_[unit.pool];
  pool.clear(unit.slot);
  if (unit.slot >= pool.limit())
    pool.drop(unit.slot);
  unit.slot = kNoSlot;
  unit.source = Source::kNone;
  unit.state.store(State::kAbsent, std::memory_order_relaxed);
}

/// Not all matrices are: a skill may have put others in the place of some.
bool ExpertStore::in_use(const Matrix& matrix) const {
  return matrix.opened_in + kStepsInUse >= steps_;
}

void ExpertStore::queue(uint32_t matrix, uint32_t expert, Source source) {
  const uint32_t n = matrices_[matrix].first_unit + expert;
  if (units_[n].state.load(std::memory_order_relaxed) == State::kAbsent)
    ahead_.push_back({n, source});
}

/// The other matrices of the layer will want the same experts.
void ExpertStore::request_siblings(const ExpertTicket& ticket) {
  const std::vector<uint32_t>& layer = layers_[matrices_[ticket.matrix_].layer];
  for (const uint32_t m : layer)
    for (uint32_t i = 0; m != ticket.matrix_ && in_use(matrices_[m]) && i < ticket.count_; ++i)
      if (ticket.order_[i] < matrices_[m].experts)
        queue(m, ticket.order_[i], Source::kSibling);
}

/// Not everything that the router named: its last choices are the least sure, and a layer's last matrix is asked for in
/// time once its experts are known. Wrong guesses cost more than these would bring.
void ExpertStore::request_predicted(ExpertStep& step, uint32_t layer) {
  if (layer >= layers_.size())
    return;
  const std::vector<uint32_t>& matrices = layers_[layer];
  const std::vector<int32_t>& named = step.predicted_[layer];
  const size_t guessed = formats::ceil_div(named.size() * kGuessedOf4, 4);
  for (size_t m = 0; m < std::max<size_t>(1, matrices.size() - 1); ++m)
    for (size_t i = 0; i < guessed; ++i)
      if (in_use(matrices_[matrices[m]]) && static_cast<uint32_t>(named[i]) < matrices_[matrices[m]].experts)
        queue(matrices[m], static_cast<uint32_t>(named[i]), Source::kPredicted);
}

void ExpertStore::wait_for_change(uint64_t seen) {
  parked_.fetch_add(1, std::memory_order_seq_cst);
  if (changes_.load(std::memory_order_seq_cst) == seen)
    futex_wait(changes_, seen);
  parked_.fetch_sub(1, std::memory_order_seq_cst);
}

void ExpertStore::wake() {
  changes_.fetch_add(1, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) != 0)
    futex_wake_all(changes_);
}

} // namespace cortiq::runtime
