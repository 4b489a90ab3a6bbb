#include "compiler/gpu/GpuBuilder.h"

// A layer's end under masks, and the sums of residual rows.

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string take(const artifact::OpUnion&, const GpuBuilder&) {
  return {};
}

Status lowerLayerGate(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::LayerGateOpT& gate = *op.AsLayerGateOp();
  const GpuPlace out = builder.place(gate.out);
  for (const bool skipped : {false, true}) {
    artifact::GpuWhenT when;
    (skipped ? when.skipped : when.gate) = gate.layer;
    builder.setWhen(std::move(when));
    CORTIQ_RETURN_IF_ERROR(
        builder.copyBehind(builder.place(skipped ? gate.before : gate.after), out, builder.elements(gate.out)));
  }
  builder.setWhen(std::nullopt);
  return {};
}

/// The number of a tap among those of the program, as the loader counts them.
uint32_t numberOf(const artifact::TapOpT& tap, const artifact::ProgramT& program) {
  uint32_t number = 0;
  for (const auto& stage : program.stages)
    for (const auto& call : stage->calls)
      if (const artifact::TapOpT* other = call->op.AsTapOp()) {
        if (other == &tap)
          return number;
        ++number;
      }
  return kAbsent;
}

Status lowerTap(const artifact::OpUnion& op, GpuBuilder& builder) {
  constexpr uint32_t kLocal = 64;
  const artifact::TapOpT& tap = *op.AsTapOp();
  const uint64_t elements = builder.elements(tap.input);
  const GpuPlace input = builder.place(tap.input);
  artifact::GpuWhenT when;
  when.tap = numberOf(tap, builder.program());
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("tap", {{kSpecLocal, kLocal}, {kSpecRows, uint32_t(elements)}}));
  d.groups = ceilDiv(elements, kLocal);
  d.chunk = builder.maxBatch(); // one row of workgroups for all
  d.push.resize(kPushWords);
  d.push[kPushInput] = input.start;
  d.push[kPushInputStride] = input.stride;
  builder.setWhen(std::move(when));
  builder.dispatch(std::move(d));
  builder.setWhen(std::nullopt);
  return {};
}

} // namespace

const GpuOpRow kGpuLayerGate{artifact::Op::LayerGateOp, take, lowerLayerGate, noLanes, false};
const GpuOpRow kGpuTap{artifact::Op::TapOp, take, lowerTap, noLanes, false};

} // namespace cortiq::compiler
