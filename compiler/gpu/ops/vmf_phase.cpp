#include <cmath>

#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  return refuseVector(op.AsVmfPhaseOp()->decay, builder);
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::VmfPhaseOpT& vmf = *op.AsVmfPhaseOp();
  artifact::GpuDispatchT d = walkTokens(vmf.state, vmf.heads, builder);
  const GpuPlace out = builder.place(vmf.out);
  // With the correction, keys and queries are of length 1.
  const auto scale = static_cast<float>(vmf.delta ? 1 / std::sqrt(static_cast<double>(vmf.phases)) : 1);
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("vmf_phase", {{kSpecLocal, deltaLocal(vmf.value_dim)},
                                                                  {kSpecHeadDim, static_cast<uint32_t>(2 * vmf.phases)},
                                                                  {kSpecValueDim, static_cast<uint32_t>(vmf.value_dim)},
                                                                  {kSpecOutOrder, out.lanes ? 1u : 0u},
                                                                  {kSpecScale, bitsOf(scale)},
                                                                  {kSpecCorrects, vmf.delta},
                                                                  {kSpecWeighted, vmf.gate != kAbsent}}));
  builder.putSlot(d.push, kRowInput, vmf.theta_q);
  builder.putSlot(d.push, kRowThird, vmf.v);
  builder.putSlot(d.push, kRowBeta, vmf.gate);
  putRow(d.push, kRowOut, out);
  d.push[kPushAux] = builder.place(vmf.theta_k).start; // rows as far apart as those of queries
  d.push[kPushVector] = builder.vector(vmf.decay);
  builder.dispatch(std::move(d));
  return {};
}

} // namespace

const GpuOpRow kGpuVmfPhase{artifact::Op::VmfPhaseOp, refuse, lower, noLanes, true};

} // namespace cortiq::compiler
