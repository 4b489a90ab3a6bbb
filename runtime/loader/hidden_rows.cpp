#include "runtime/loader/hidden_rows.h"

#include <cstring>
#include <optional>

#include "formats/artifact/kernel_abi.h"

namespace cortiq::runtime {
namespace {

/// A call that fills `slot`, searched from stage `last` backwards.
struct Found {
  const artifact::Call* call = nullptr;
  size_t stage = 0;
};

bool fills(const artifact::Call& call, uint32_t slot) {
  if (const auto* op = call.op_as_MatmulOp()) {
    for (const artifact::MatmulPart* part : *op->parts())
      if (part->out() == slot)
        return true;
  } else if (const auto* op = call.op_as_QuantizeOp()) {
    return op->out() == slot || op->act_out() == slot;
  } else if (const auto* op = call.op_as_HadamardOp()) {
    return op->out() == slot || op->act_out() == slot;
  } else if (const auto* op = call.op_as_NormOp()) {
    return op->out() == slot || op->act_out() == slot;
  }
  return false;
}

std::optional<Found> find_maker(const artifact::Program& program, uint32_t slot, size_t last) {
  for (size_t stage = last + 1; stage-- > 0;) {
    const artifact::Stage& entry = *program.stages()->Get(static_cast<uint32_t>(stage));
    if (!entry.draft())
      for (const artifact::Call* call : *entry.calls())
        if (!call->idle() && fills(*call, slot))
          return Found{call, stage};
  }
  return std::nullopt;
}

} // namespace

HiddenRows find_hidden_rows(const artifact::Program& program, const Resolver& resolver,
                            const ResolvedProgram& resolved) {
  uint32_t slot = program.logits();
  for (size_t stage = program.stages()->size(); stage-- > 0;) {
    const std::optional<Found> maker = find_maker(program, slot, stage);
    if (!maker)
      return {};
    stage = maker->stage;
    if (const auto* op = maker->call->op_as_MatmulOp()) {
      if (slot != program.logits())
        return {};
      slot = op->parts()->Get(0)->input();
    } else if (const auto* op = maker->call->op_as_QuantizeOp()) {
      slot = op->input();
    } else if (const auto* op = maker->call->op_as_HadamardOp()) {
      slot = op->input();
    } else if (const auto* op = maker->call->op_as_NormOp()) {
      const bool head = program.stages()->Get(static_cast<uint32_t>(stage))->head();
      const uint32_t rows = op->out() != kNoIndex ? op->out() : op->act_out();
      if (!head || rows >= resolver.slots.size())
        return {};
      // Stages of experts may have been joined, which stand before; the number of those behind stays.
      const size_t behind = program.stages()->size() - stage - 1;
      return {resolver.slots[rows], resolver.is_q8(rows), static_cast<uint32_t>(resolved.stages.size() - behind)};
    }
  }
  return {};
}

void add_hidden_row(const HiddenRows& hidden, uint8_t* arena, uint64_t token, std::span<double> sum) {
  if (!hidden.q8) {
    const float* row = hidden.slot.f32(arena, token);
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += row[i];
    return;
  }
  const uint8_t* record = hidden.slot.bytes(arena, token);
  const formats::Q8ActLayout layout = formats::q8_act_layout(sum.size());
  for (size_t i = 0; i < sum.size(); ++i) {
    float scale;
    std::memcpy(&scale, record + layout.scale + i / 32 * sizeof scale, sizeof scale);
    sum[i] += static_cast<double>(scale) * static_cast<int8_t>(record[i]);
  }
}

} // namespace cortiq::runtime
