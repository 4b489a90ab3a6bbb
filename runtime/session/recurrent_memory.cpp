#include "runtime/session/recurrent_memory.h"

#include <cstring>
#include <utility>

#include "formats/checked_math.h"

namespace cortiq::runtime {

namespace {

// States start on cache lines.
constexpr uint64_t kAlignment = 64;

} // namespace

Status RecurrentMemory::reserve(std::span<const uint64_t> sizes, std::optional<uint64_t> ring_slack, bool guesses) {
  ring_slack_ = ring_slack;
  std::optional<uint64_t> total = 0;
  std::vector<uint64_t> offsets;
  for (const uint64_t size : sizes) {
    offsets.push_back(*total);
    total = formats::checked_add(total, formats::checked_mul(size, sizeof(float)));
    if (total)
      total = formats::checked_round_up(*total, kAlignment);
    if (!total || *total > (uint64_t{1} << 46))
      return io_error("the recurrent states do not fit the address space");
  }
  memory_ = ReservedMemory(*total);
  kept_ = ReservedMemory(guesses ? *total : 0);
  if (memory_.bytes() != *total || (guesses && kept_.bytes() != *total))
    return io_error("there is no address space for " + std::to_string(*total) + " bytes of recurrent states");
  for (const uint64_t offset : offsets) {
    states_.push_back(reinterpret_cast<float*>(memory_.data() + offset));
    if (guesses)
      kept_states_.push_back(reinterpret_cast<float*>(kept_.data() + offset));
  }
  return {};
}

uint64_t RecurrentMemory::reserved_bytes() const {
  uint64_t bytes = memory_.bytes() + kept_.bytes();
  for (const Copy& copy : copies_)
    bytes += copy.memory.bytes();
  return bytes;
}

uint64_t RecurrentMemory::restore(uint64_t position) {
  const uint64_t reach = rings_reach();
  if (states_.empty()) {
    if (position >= reach)
      return position;
    furthest_ = 0;
    return 0;
  }
  if (kept_position_ != 0 && kept_position_ == position && position >= reach) {
    std::swap(memory_, kept_);
    std::swap(states_, kept_states_);
    kept_position_ = 0;
    position_ = position;
    return position;
  }
  const Copy* nearest = nullptr;
  for (const Copy& copy : copies_)
    if (copy.position != 0 && copy.position >= reach && copy.position <= position &&
        (!nearest || copy.position > nearest->position))
      nearest = &copy;
  if (!nearest)
    furthest_ = 0;
  if (nearest)
    std::memcpy(memory_.data(), nearest->memory.data(), memory_.bytes());
  else
    std::memset(memory_.data(), 0, memory_.bytes());
  position_ = nearest ? nearest->position : 0;
  return *position_;
}

void RecurrentMemory::begin(uint64_t position, uint64_t count) {
  if (!keeps_tokens())
    return;
  tokens_.resize(position);
  if (kept_position_ > position)
    kept_position_ = 0;
  for (Copy& copy : copies_)
    if (copy.position > position)
      copy.position = 0;
  if (count > 1)
    keep_copy();
}

void RecurrentMemory::commit(std::span<const uint32_t> tokens) {
  if (!keeps_tokens())
    return;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  position_ = tokens_.size();
  if (tokens.size() > 1)
    keep_copy();
}

void RecurrentMemory::commit_guess(std::span<const uint32_t> tokens) {
  if (!keeps_tokens())
    return;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  position_ = tokens_.size();
  kept_position_ = states_.empty() ? 0 : tokens_.size() - 1;
}

void RecurrentMemory::adopt(std::span<const uint32_t> tokens, uint64_t furthest) {
  furthest_ = furthest;
  kept_position_ = 0;
  for (Copy& copy : copies_)
    copy.position = 0;
  if (!keeps_tokens())
    return;
  tokens_.assign(tokens.begin(), tokens.end());
  position_ = tokens.size();
  keep_copy();
}

void RecurrentMemory::keep_copy() {
  if (states_.empty() || position_ == 0)
    return;
  for (const Copy& copy : copies_)
    if (copy.position == position_)
      return;
  Copy& copy = *std::min_element(std::begin(copies_), std::end(copies_),
                                 [](const Copy& a, const Copy& b) { return a.position < b.position; });
  if (copy.memory.bytes() == 0)
    copy.memory = ReservedMemory(memory_.bytes());
  copy.position = 0;
  if (copy.memory.bytes() == 0)
    return; // without the memory for it the way back is longer, not wrong
  std::memcpy(copy.memory.data(), memory_.data(), memory_.bytes());
  copy.position = *position_;
}

} // namespace cortiq::runtime
