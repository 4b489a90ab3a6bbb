#include <algorithm>
#include <tuple>

#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  const artifact::NormOpT& norm = *op.AsNormOp();
  return refuseVectors({norm.weight, norm.bias}, builder);
}

Status dispatchNorm(const artifact::NormOpT& norm, const GpuPlace& out, RowForm form, GpuBuilder& builder) {
  const uint64_t elements = builder.elements(norm.input);
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("rms_norm", {{kSpecLocal, elements >= 2048 ? 512u : 128u},
                                                                 {kSpecRows, uint32_t(elements)},
                                                                 {kSpecOutOrder, out.lanes ? 1u : 0u},
                                                                 {kSpecBias, norm.bias != kAbsent},
                                                                 {kSpecScale, bitsOf(norm.scale)},
                                                                 {kSpecEps, bitsOf(norm.eps)},
                                                                 {kSpecAdd, norm.add != kAbsent},
                                                                 {kSpecSumOut, norm.sum_out != kAbsent},
                                                                 {kSpecCentered, norm.centered},
                                                                 {kSpecWeighted, norm.weight != kAbsent},
                                                                 {kSpecQuantOut, static_cast<uint32_t>(form)}}));
  d.groups = 1;
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, norm.input);
  putRow(d.push, kRowOut, out);
  d.push[kPushVector] = builder.vector(norm.weight);
  d.push[kPushVector2] = builder.vector(norm.bias);
  builder.putSlot(d.push, kRowAux, norm.add);
  builder.putSlot(d.push, kRowThird, norm.sum_out);
  builder.dispatch(std::move(d));
  return {};
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::NormOpT& norm = *op.AsNormOp();
  const auto make = [&](const GpuPlace& out, RowForm form) { return dispatchNorm(norm, out, form, builder); };
  const uint32_t only = builder.onlyEightBits(norm.out, norm.act_out);
  if (only != kAbsent && norm.sum_out == kAbsent)
    return builder.makeRow(only, make);
  const uint64_t elements = builder.elements(norm.input);
  const GpuPlace out = builder.resultPlace(norm.out, norm.act_out, elements);
  CORTIQ_RETURN_IF_ERROR(make(out, RowForm::kFloats));
  return builder.finishResults(out, norm.out, norm.act_out, elements);
}

} // namespace

const GpuOpRow kGpuNorm{artifact::Op::NormOp, refuse, lower, noLanes, true, EightBits::kBehind};

} // namespace cortiq::compiler
