#include "runtime/overlay/overlay.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "formats/quote.h"

namespace cortiq::runtime {
namespace {

using formats::OverlaySelection;
using formats::OverlayShare;

/// The weight that stands for `skill` in a mixture: its own, else the model's.
StatusOr<uint32_t> part_of(const artifact::Weight& mixed, uint32_t skill) {
  uint32_t own = kNoIndex;
  for (const artifact::BlendPart* part : *mixed.blend()) {
    if (part->skill() == skill)
      return part->weight();
    if (part->skill() == kNoIndex)
      own = part->weight();
  }
  return own;
}

uint64_t new_number() {
  static std::atomic<uint64_t> latest{0};
  return latest.fetch_add(1, std::memory_order_relaxed) + 1;
}

} // namespace

OverlayState::OverlayState() : number(new_number()) {}

StatusOr<std::vector<uint8_t>> mix_weight(const Resolver& resolver, uint32_t index, const OverlaySelection& selection) {
  const WeightRef& mixed = resolver.weights[index];
  std::vector<float> sum(mixed.rows * mixed.cols), row(mixed.cols);
  for (const OverlayShare& share : selection.shares) {
    CORTIQ_ASSIGN_OR_RETURN(const uint32_t part_index, part_of(*mixed.entry, share.skill));
    CORTIQ_ASSIGN_OR_RETURN(const WeightRef part, resolver.weight(part_index, "blend"));
    for (uint64_t r = 0; r < mixed.rows; ++r) {
      CORTIQ_RETURN_IF_ERROR(
          formats::decode_packed_row(*part.codec, part.layout, part.bytes, part.rows, part.cols, r, row.data()));
      float* out = sum.data() + r * mixed.cols;
      for (uint64_t c = 0; c < mixed.cols; ++c)
        out[c] += share.weight * row[c];
    }
  }
  const std::span<const uint8_t> payload(reinterpret_cast<const uint8_t*>(sum.data()), sum.size() * sizeof(float));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes,
                          formats::packed_bytes(*mixed.codec, mixed.layout, mixed.rows, mixed.cols));
  std::vector<uint8_t> packed(bytes + formats::kLayoutTailPadding);
  CORTIQ_RETURN_IF_ERROR(
      formats::pack(*mixed.codec, mixed.layout, payload, mixed.rows, mixed.cols, {}, std::span(packed).first(bytes)));
  return packed;
}

namespace {

/// The calls of a point's blend, reading weights that are mixed on first need.
StatusOr<CallList> mix_calls(const OverlayPoint& point, const Resolver& resolver, const ProgramFacts& facts,
                             OverlayState& state, uint32_t number) {
  Resolver mixing = resolver;
  mixing.mix = [&](uint32_t index) -> StatusOr<std::span<const uint8_t>> {
    auto found = state.mixed_weights.find(index);
    if (found == state.mixed_weights.end()) {
      CORTIQ_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, mix_weight(resolver, index, state.selection));
      found = state.mixed_weights.emplace(index, std::move(bytes)).first;
    }
    return std::span<const uint8_t>(found->second).first(found->second.size() - formats::kLayoutTailPadding);
  };
  ProgramFacts same = unclaimed(facts);
  CallList calls;
  CORTIQ_RETURN_IF_ERROR(resolve_operation(*point.blend, mixing, same, calls));
  for (const auto& call : calls)
    call->number = number; // its time counts as that of the point's alternatives
  return calls;
}

const CallList* alternative_of(const OverlayPoint& point, uint32_t skill) {
  for (const OverlayPoint::Alternative& alternative : point.alternatives)
    if (alternative.skill == skill)
      return &alternative.calls;
  return nullptr;
}

bool changed_by(const OverlayPoint& point, const OverlaySelection& selection) {
  return std::any_of(selection.shares.begin(), selection.shares.end(),
                     [&](const OverlayShare& share) { return alternative_of(point, share.skill) != nullptr; });
}

/// Bytes of all weights that `selection` mixes.
StatusOr<uint64_t> mixed_bytes(const ResolvedProgram& program, const Resolver& resolver, const ProgramFacts& facts,
                               const OverlaySelection& selection) {
  std::set<uint32_t> mixed;
  Resolver counting = resolver;
  counting.mix = [&](uint32_t index) {
    mixed.insert(index);
    return std::span<const uint8_t>();
  };
  for (const Stage& stage : program.stages)
    for (const OverlayPoint& point : stage.points)
      if (point.blend && changed_by(point, selection)) {
        ProgramFacts same = unclaimed(facts);
        CallList calls;
        CORTIQ_RETURN_IF_ERROR(resolve_operation(*point.blend, counting, same, calls));
      }
  uint64_t bytes = 0;
  for (const uint32_t index : mixed) {
    const WeightRef& weight = resolver.weights[index];
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t packed,
                            formats::packed_bytes(*weight.codec, weight.layout, weight.rows, weight.cols));
    bytes += packed + formats::kLayoutTailPadding;
  }
  return bytes;
}

} // namespace

StatusOr<std::shared_ptr<const OverlayState>>
make_overlay_state(const ResolvedProgram& program, const Resolver& resolver, const ProgramFacts& facts,
                   const formats::OverlayCatalog& catalog, const OverlaySelection& selection, MemoryBudget* budget) {
  auto state = std::make_shared<OverlayState>();
  state->selection = selection;
  state->mask = selection.mask ? &catalog.masks[*selection.mask] : nullptr;
  if (budget && selection.blends()) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, mixed_bytes(program, resolver, facts, selection));
    CORTIQ_RETURN_IF_ERROR(budget->take(bytes));
    state->share = BudgetShare(*budget, bytes);
  }
  state->chosen.resize(program.point_count);
  state->mixed_calls.reserve(program.point_count); // `chosen` points into it
  for (const Stage& stage : program.stages)
    for (const OverlayPoint& point : stage.points) {
      if (!changed_by(point, selection))
        continue;
      if (!selection.blends()) {
        state->chosen[point.number] = alternative_of(point, selection.shares[0].skill);
        continue;
      }
      // What serves some skills alone, as an input multiplied by a weight's column scales, no blend reads.
      if (!point.blend)
        continue;
      const CallList& alternative = point.alternatives[0].calls;
      const uint32_t number = alternative.empty() ? 0 : alternative[0]->number;
      CORTIQ_ASSIGN_OR_RETURN(CallList calls, mix_calls(point, resolver, facts, *state, number));
      state->mixed_calls.push_back(std::move(calls));
      state->chosen[point.number] = &state->mixed_calls.back();
    }
  return std::shared_ptr<const OverlayState>(std::move(state));
}

void cut_columns(const StepContext& step, const MaskBits& bits, float* x, uint64_t first, uint64_t count) {
  if (bits.kind == MaskBits::Kind::kNone || !step.overlay || !step.overlay->mask)
    return;
  const formats::OverlayMask& mask = *step.overlay->mask;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t bit = bits.first + (bits.group == 0 ? 0 : (first + i) / bits.group);
    if (!(bits.kind == MaskBits::Kind::kHeads ? mask.query_head(bits.layer, bit) : mask.neuron(bits.layer, bit)))
      x[i] = 0;
  }
}

} // namespace cortiq::runtime
