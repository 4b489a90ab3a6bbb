#pragma once

// What the operations of a mixture of experts share: the plan of a batch, and slots with one record a pair.
//
// A pair is one choice of one token: choice j of token t has number t * k + j before the pairs are sorted by expert.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/ops/op.h"

namespace cortiq::runtime {

/// 32-bit words of a plan a token, see MoePlanOp of the schema.
constexpr uint64_t moe_plan_words(uint64_t experts, uint64_t choices) {
  return 2 * experts + 2 + 2 * choices;
}

/// A plan in the arena. Tokens count from the batch's (or the head's) first. What is read from it stays within the
/// batch whatever stands there: an artifact may have laid another slot over the plan.
class MoePlan {
public:
  MoePlan(const SlotRef& slot, uint8_t* arena, const StepShape& shape, uint64_t experts, uint64_t choices)
      : used_count(reinterpret_cast<int32_t*>(slot.bytes(arena, shape.first))), used(used_count + 1),
        first_pair(used + experts), token(first_pair + experts + 1), pair_of(token + shape.count * choices),
        experts_(experts), tokens_(shape.count), pairs_(shape.count * choices) {}

  /// Experts that have pairs; the n-th of them, ascending.
  uint64_t experts_in_use() const { return bounded(*used_count, experts_); }
  uint64_t expert_in_use(uint64_t n) const { return bounded(used[n], experts_ - 1); }
  /// First pair of an expert, and the one behind its last.
  std::pair<uint64_t, uint64_t> pairs_of(uint64_t expert) const {
    const uint64_t first = bounded(first_pair[expert], pairs_);
    return {first, std::max(first, bounded(first_pair[expert + 1], pairs_))};
  }
  /// The expert whose pairs include `pair`.
  uint64_t expert_of(uint64_t pair) const {
    const int32_t* end = first_pair + experts_ + 1;
    const int64_t place =
        std::upper_bound(static_cast<const int32_t*>(first_pair), end, static_cast<int32_t>(pair)) - first_pair - 1;
    return bounded(place, experts_ - 1);
  }
  uint64_t token_of(uint64_t pair) const { return bounded(token[pair], tokens_ - 1); }
  /// The pair of choice `choice` (token * choices + number).
  /// Whether it chose an expert that runs here; see StepContext::missing_experts.
  bool has_pair(uint64_t choice) const { return pair_of[choice] >= 0; }
  uint64_t pair_of_choice(uint64_t choice) const { return bounded(pair_of[choice], pairs_ - 1); }

  int32_t* used_count;
  int32_t* used;       ///< [experts]
  int32_t* first_pair; ///< [experts + 1]; the last is the number of pairs
  int32_t* token;      ///< [pairs]
  int32_t* pair_of;    ///< [pairs]

private:
  static uint64_t bounded(int64_t value, uint64_t most) {
    return std::min(static_cast<uint64_t>(std::max<int64_t>(value, 0)), most);
  }
  uint64_t experts_, tokens_, pairs_;
};

/// A plan's slot for `experts` experts and `choices` choices.
StatusOr<SlotRef> moe_plan_slot(const Resolver& resolver, uint32_t index, uint64_t experts, uint64_t choices,
                                const char* what);

/// Records a token of slot `index`.
StatusOr<uint64_t> moe_records(const Resolver& resolver, uint32_t index, const char* what);

/// A slot of `records` records a token, each of at least `elements` elements. Its stride is that of a record: record p
/// of the batch is at bytes(arena, shape.first * records + p).
StatusOr<SlotRef> moe_record_slot(const Resolver& resolver, uint32_t index, artifact::BufferKind kind,
                                  uint64_t elements, uint64_t records, const char* what);

/// Column scales of the experts' weights as f16 bits, null for experts without; empty when no expert has any. `cols`
/// says how many each must have.
StatusOr<std::vector<const uint16_t*>> moe_column_scales(const Resolver& resolver,
                                                         const flatbuffers::Vector<uint32_t>* list,
                                                         const std::vector<uint64_t>& cols, const char* what);

} // namespace cortiq::runtime
