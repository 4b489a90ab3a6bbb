#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  const artifact::KdaOpT& kda = *op.AsKdaOp();
  return refuseVectors({kda.decay, kda.dt_bias, kda.norm}, builder);
}

/// What the vector of decays has one of, as shaders/ops/kda.glsl counts.
uint32_t decaysOf(const artifact::KdaOpT& kda, const GpuBuilder& builder) {
  const uint64_t count = builder.weight(kda.decay).cols;
  return count == kda.heads ? 0 : count == kda.key_dim ? 1 : 2;
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::KdaOpT& kda = *op.AsKdaOp();
  artifact::GpuDispatchT d = walkTokens(kda.state, kda.heads, builder);
  const GpuPlace out = builder.place(kda.out);
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("kda", {{kSpecLocal, deltaLocal(kda.value_dim)},
                                                            {kSpecHeads, static_cast<uint32_t>(kda.heads)},
                                                            {kSpecHeadDim, static_cast<uint32_t>(kda.key_dim)},
                                                            {kSpecValueDim, static_cast<uint32_t>(kda.value_dim)},
                                                            {kSpecEps, bitsOf(kda.eps)},
                                                            {kSpecOutOrder, out.lanes ? 1u : 0u},
                                                            {kSpecRates, decaysOf(kda, builder)},
                                                            {kSpecFunction, kda.bounded},
                                                            {kSpecLimit, bitsOf(kda.lower_bound)}}));
  builder.putSlot(d.push, kRowInput, kda.q);
  builder.putSlot(d.push, kRowThird, kda.v);
  builder.putSlot(d.push, kRowBeta, kda.b);
  putRow(d.push, kRowOut, out);
  // Rows of one width are equally far apart.
  d.push[kPushAux] = builder.place(kda.k).start;
  d.push[kPushFades] = builder.place(kda.f).start;
  d.push[kPushOpening] = builder.place(kda.gate).start;
  d.push[kPushVector] = builder.vector(kda.decay);
  d.push[kPushVector2] = builder.vector(kda.dt_bias);
  d.push[kPushHeadNorm] = builder.vector(kda.norm);
  builder.dispatch(std::move(d));
  return {};
}

} // namespace

const GpuOpRow kGpuKda{artifact::Op::KdaOp, refuse, lower, noLanes, true};

} // namespace cortiq::compiler
