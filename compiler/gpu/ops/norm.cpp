#include <algorithm>
#include <tuple>

#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  const artifact::NormOpT& norm = *op.AsNormOp();
  if (std::string reason = refuseVector(norm.weight, builder); !reason.empty())
    return reason;
  return refuseVector(norm.bias, builder);
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::NormOpT& norm = *op.AsNormOp();
  const uint64_t elements = builder.elements(norm.input);
  const GpuPlace input = builder.place(norm.input);
  const uint32_t result = norm.out != kAbsent ? norm.out : norm.act_out;
  const bool eightBits = builder.eightBits(result);
  const GpuPlace out = eightBits ? builder.scratch(elements) : builder.place(result);
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
                                                                 {kSpecWeighted, norm.weight != kAbsent}}));
  d.groups = 1;
  d.push.resize(kPushWords);
  d.push[kPushInput] = input.start;
  d.push[kPushInputStride] = input.stride;
  d.push[kPushOut] = out.start;
  d.push[kPushOutStride] = out.stride;
  d.push[kPushVector] = builder.vector(norm.weight);
  d.push[kPushVector2] = builder.vector(norm.bias);
  if (norm.add != kAbsent) {
    const GpuPlace add = builder.place(norm.add);
    d.push[kPushAux] = add.start;
    d.push[kPushAuxStride] = add.stride;
  }
  if (norm.sum_out != kAbsent) {
    const GpuPlace sum = builder.place(norm.sum_out);
    d.push[kPushThird] = sum.start;
    d.push[kPushThirdStride] = sum.stride;
  }
  builder.dispatch(std::move(d));
  if (eightBits)
    CORTIQ_RETURN_IF_ERROR(builder.quantizeBehind(out, result, elements));
  if (norm.out != kAbsent && norm.act_out != kAbsent)
    return builder.eightBits(norm.act_out) ? builder.quantizeBehind(out, norm.act_out, elements)
                                           : builder.copyBehind(out, builder.place(norm.act_out), elements);
  return {};
}

} // namespace

const GpuOpRow kGpuNorm{artifact::Op::NormOp, refuse, lower, noLanes, true, EightBits::kBehind};

} // namespace cortiq::compiler
