#pragma once

// What the operations of a mixture of experts share: the plan of a batch, and slots with one record a pair.
//
// A pair is one choice of one token: choice j of token t has number t * k + j before the pairs are sorted by expert.

#include <algorithm>
#include <cstdint>

#include "runtime/ops/op.h"

namespace cortiq::runtime {

/// 32-bit words of a plan a token, see MoePlanOp of the schema.
constexpr uint64_t moe_plan_words(uint64_t experts, uint64_t choices) {
  return 2 * experts + 2 + 2 * choices;
}

/// A plan in the arena. Tokens count from the batch's (or the head's) first.
struct MoePlan {
  MoePlan(const SlotRef& slot, uint8_t* arena, const StepShape& shape, uint64_t experts, uint64_t choices)
      : experts(experts), pairs(shape.count * choices),
        used_count(reinterpret_cast<int32_t*>(slot.bytes(arena, shape.first))), used(used_count + 1),
        first_pair(used + experts), token(first_pair + experts + 1), pair_of(token + pairs) {}

  /// The expert whose pairs include `pair`.
  uint64_t expert_of(uint64_t pair) const {
    return static_cast<uint64_t>(std::upper_bound(first_pair, first_pair + experts + 1, static_cast<int32_t>(pair)) -
                                 first_pair - 1);
  }

  uint64_t experts, pairs;
  int32_t* used_count; ///< experts that have pairs
  int32_t* used;       ///< [experts] their numbers, ascending
  int32_t* first_pair; ///< [experts + 1] of each expert; the last is the number of pairs
  int32_t* token;      ///< [pairs] of each pair
  int32_t* pair_of;    ///< [pairs] by token * choices + choice
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
