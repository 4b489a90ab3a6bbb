// From the calls of an artifact to calls and overlay points of the program.

#include <algorithm>

#include "runtime/overlay/overlay.h"

namespace cortiq::runtime {

Status resolve_operation(const artifact::Call& call, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const auto rows = op_table();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const OpRow& r) { return r.op == call.op_type(); });
  if (row == rows.end())
    return unsupported("operation " + std::to_string(static_cast<int>(call.op_type())) +
                       " is not known to this version");
  const size_t first = out.size();
  CORTIQ_RETURN_IF_ERROR(row->resolve(call, resolver, facts, out));
  for (size_t i = first; i < out.size(); ++i) {
    if (call.gate() != kNoIndex)
      out[i]->gate = call.gate();
    if (const artifact::MaskBits* bits = call.mask()) {
      constexpr MaskBits::Kind kKinds[] = {MaskBits::Kind::kNeurons, MaskBits::Kind::kHeads, MaskBits::Kind::kExperts};
      if (bits->kind() > artifact::MaskKind::Experts)
        return unsupported("a mask of kind " + std::to_string(static_cast<int>(bits->kind())) +
                           " is not known to this version");
      out[i]->mask = {kKinds[static_cast<size_t>(bits->kind())], bits->layer(), bits->first(), bits->group()};
    }
  }
  return {};
}

ProgramFacts unclaimed(const ProgramFacts& facts) {
  ProgramFacts out = facts;
  std::fill(out.states.begin(), out.states.end(), 0);
  return out;
}

namespace {

/// Resolves calls that run in the place of others, whose recurrent states they may use, and none else: `taken`, by
/// state.
Status resolve_beside(const artifact::Call& call, const Resolver& resolver, const std::vector<uint64_t>& taken,
                      ProgramFacts& facts, CallList& out) {
  ProgramFacts own = unclaimed(facts);
  CORTIQ_RETURN_IF_ERROR(resolve_operation(call, resolver, own, out));
  for (size_t i = 0; i < own.states.size(); ++i)
    if (own.states[i] != 0 && (i >= taken.size() || own.states[i] != taken[i]))
      return invalid("an alternative has a state that is not that of the call in whose place it runs");
  if (own.taps.size() != facts.taps.size())
    return invalid("an alternative has a tap of its own");
  facts.embedding_rows = own.embedding_rows;
  return {};
}

/// Checks the call of a blend as it will be resolved, without its weights.
Status check_blend(const artifact::Call& call, const Resolver& resolver, const std::vector<uint64_t>& taken,
                   ProgramFacts& facts, ResolvedProgram& program) {
  Resolver mixing = resolver;
  mixing.mix = [](uint32_t) { return std::span<const uint8_t>(); };
  CallList calls;
  CORTIQ_RETURN_IF_ERROR(resolve_beside(call, mixing, taken, facts, calls));
  for (const auto& one : calls)
    program.scratch_bytes = std::max(program.scratch_bytes, one->scratch_bytes());
  return {};
}

} // namespace

Status resolve_call(const artifact::Call& call, const Resolver& resolver, ProgramFacts& facts, size_t skills,
                    ResolvedProgram& program, Stage& stage) {
  const size_t first = stage.calls.size();
  const std::vector<uint64_t> before = facts.states;
  if (!call.idle())
    CORTIQ_RETURN_IF_ERROR(resolve_operation(call, resolver, facts, stage.calls));
  if (!call.alternatives() || call.alternatives()->size() == 0)
    return call.idle() ? invalid("a call is idle and has no alternative") : Status();
  std::vector<uint64_t> taken = facts.states; // by this call
  for (size_t i = 0; i < before.size(); ++i)
    taken[i] -= before[i];
  OverlayPoint point;
  point.number = program.point_count++;
  point.first = static_cast<uint32_t>(first);
  point.count = static_cast<uint32_t>(stage.calls.size() - first);
  for (const artifact::Call* row : *call.alternatives()) {
    if (row->skill() == kNoIndex) {
      point.blend = row;
      CORTIQ_RETURN_IF_ERROR(check_blend(*row, resolver, taken, facts, program));
      continue;
    }
    if (row->skill() >= skills)
      return invalid("a call names skill " + std::to_string(row->skill()) + " of " + std::to_string(skills));
    OverlayPoint::Alternative& alternative = point.alternatives.emplace_back();
    alternative.skill = row->skill();
    CORTIQ_RETURN_IF_ERROR(resolve_beside(*row, resolver, taken, facts, alternative.calls));
  }
  stage.points.push_back(std::move(point));
  return {};
}

void number_calls(ResolvedProgram& program) {
  auto number = [&](const CallList& calls) {
    for (const auto& call : calls) {
      call->number = program.call_count++;
      program.scratch_bytes = std::max(program.scratch_bytes, call->scratch_bytes());
    }
  };
  for (const Stage& stage : program.stages) {
    number(stage.calls);
    for (const OverlayPoint& point : stage.points)
      for (const OverlayPoint::Alternative& alternative : point.alternatives)
        number(alternative.calls);
  }
}

} // namespace cortiq::runtime
