#include "runtime/experts/expert_ticket.h"

#include <chrono>

#include "runtime/executor/futex.h"
#include "runtime/experts/expert_store.h"

namespace cortiq::runtime {
namespace {

// Pauses before a worker parks: a read takes far longer, but another worker's pin is soon given.
constexpr unsigned kSpins = 400;

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

} // namespace

ExpertStep::ExpertStep(ExpertStore& store)
    : store_(store), tickets_(store.matrix_count()), predicted_(store.layer_count()) {
  for (uint32_t m = 0; m < tickets_.size(); ++m) {
    ExpertTicket& ticket = tickets_[m];
    ticket.owner_ = this;
    ticket.matrix_ = m;
    ticket.used_.resize(store.experts(m));
    ticket.order_.resize(store.experts(m));
    ticket.work_.reset(new ExpertTicket::Work[store.experts(m)]);
  }
}

ExpertStep::~ExpertStep() {
  store_.end_session(tickets_);
}

void ExpertStep::begin(uint64_t tokens) {
  ++number_;
  failed_.store(false, std::memory_order_relaxed);
  failure_ = {};
  for (std::vector<int32_t>& experts : predicted_)
    experts.clear();
  store_.begin_step(tickets_, tokens);
}

Status ExpertStep::end() {
  std::lock_guard lock(mutex_);
  return failure_;
}

void ExpertStep::fail(const Status& status) {
  std::lock_guard lock(mutex_);
  if (failure_.ok())
    failure_ = status;
  failed_.store(true, std::memory_order_release);
}

ExpertTicket& ExpertStep::open(uint32_t matrix, std::span<const int32_t> used, uint32_t items) {
  ExpertTicket& ticket = tickets_[matrix];
  if (ticket.step_.load(std::memory_order_acquire) == number_)
    return ticket;
  std::lock_guard lock(mutex_);
  if (ticket.step_.load(std::memory_order_relaxed) != number_) {
    store_.open(*this, ticket, used, items);
    ticket.step_.store(number_, std::memory_order_release);
  }
  return ticket;
}

const uint8_t* ExpertStep::bytes(ExpertTicket& ticket, uint64_t position) {
  using Entry = ExpertTicket::Entry;
  using State = ExpertStore::State;
  if (position >= ticket.count_)
    return nullptr;
  const auto at = static_cast<uint32_t>(position);
  ExpertStore::Unit& unit = store_.unit(ticket, at);
  uint64_t start = 0;
  for (unsigned spins = 0;; ++spins) {
    const uint64_t seen = store_.changes_.load(std::memory_order_seq_cst);
    const bool pinned = ticket.work_[at].entry.load(std::memory_order_acquire) == Entry::kPinned;
    const State state = pinned ? unit.state.load(std::memory_order_acquire) : State::kAbsent;
    if (state == State::kFailed)
      fail(store_.failure());
    const bool done =
        state == State::kReady || state == State::kFailed || (!pinned && failed_.load(std::memory_order_acquire));
    if (done) {
      if (start != 0)
        store_.waited_ns_.fetch_add(now_ns() - start, std::memory_order_relaxed);
      return state == State::kReady ? unit.bytes : nullptr;
    }
    if (start == 0)
      start = now_ns();
    if (spins < kSpins)
      spin_pause();
    else
      store_.wait_for_change(seen);
  }
}

void ExpertStep::finish(ExpertTicket& ticket, uint64_t position, uint32_t count) {
  if (position < ticket.count_ &&
      ticket.work_[position].items_left.fetch_sub(count, std::memory_order_acq_rel) == count)
    store_.finish(ticket, static_cast<uint32_t>(position));
}

} // namespace cortiq::runtime
