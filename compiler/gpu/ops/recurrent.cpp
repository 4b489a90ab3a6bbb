#include "compiler/gpu/GpuBuilder.h"

// Operations with recurrent state: a workgroup walks all tokens of a batch. Their states are bound where others have
// caches.

namespace cortiq::compiler {
namespace {

using namespace formats;

constexpr uint32_t kConvLocal = 64;

struct Conv {
  uint32_t input, weight, state, out;
  uint64_t taps;
  bool silu, gated; ///< gated: the input is [B | C | X]
};

std::string refuseConv(const artifact::OpUnion& op, const GpuBuilder& builder) {
  return refuseVector(op.AsCausalConvOp() ? op.AsCausalConvOp()->weight : op.AsShortConvOp()->weight, builder);
}

Status lowerConvolution(const Conv& conv, GpuBuilder& builder) {
  const uint64_t channels = builder.elements(conv.out);
  const GpuPlace out = builder.place(conv.out);
  artifact::GpuDispatchT d = walkTokens(conv.state, ceilDiv(channels, kConvLocal), builder);
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("causal_conv", {{kSpecLocal, kConvLocal},
                                                                    {kSpecRows, static_cast<uint32_t>(channels)},
                                                                    {kSpecTaps, static_cast<uint32_t>(conv.taps)},
                                                                    {kSpecFunction, conv.silu},
                                                                    {kSpecPair, conv.gated},
                                                                    {kSpecOutOrder, out.lanes ? 1u : 0u}}));
  builder.putSlot(d.push, kRowInput, conv.input);
  putRow(d.push, kRowOut, out);
  d.push[kPushVector] = builder.vector(conv.weight);
  builder.dispatch(std::move(d));
  return {};
}

Status lowerCausalConv(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::CausalConvOpT& conv = *op.AsCausalConvOp();
  return lowerConvolution({conv.input, conv.weight, conv.state, conv.out, conv.taps, conv.silu, false}, builder);
}

Status lowerShortConv(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::ShortConvOpT& conv = *op.AsShortConvOp();
  return lowerConvolution({conv.input, conv.weight, conv.state, conv.out, conv.taps, false, true}, builder);
}

std::string refuseDelta(const artifact::OpUnion& op, const GpuBuilder& builder) {
  const artifact::GatedDeltaOpT& delta = *op.AsGatedDeltaOp();
  return refuseVectors({delta.decay, delta.dt_bias, delta.norm}, builder);
}

Status lowerDelta(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::GatedDeltaOpT& delta = *op.AsGatedDeltaOp();
  artifact::GpuDispatchT d = walkTokens(delta.state, delta.value_heads, builder);
  const GpuPlace out = builder.place(delta.out);
  CORTIQ_ASSIGN_OR_RETURN(d.module_,
                          builder.module("gated_delta", {{kSpecLocal, deltaLocal(delta.value_dim)},
                                                         {kSpecHeads, static_cast<uint32_t>(delta.value_heads)},
                                                         {kSpecKvHeads, static_cast<uint32_t>(delta.key_heads)},
                                                         {kSpecHeadDim, static_cast<uint32_t>(delta.key_dim)},
                                                         {kSpecValueDim, static_cast<uint32_t>(delta.value_dim)},
                                                         {kSpecEps, bitsOf(delta.eps)},
                                                         {kSpecOutOrder, out.lanes ? 1u : 0u},
                                                         {kSpecTiled, delta.tiled},
                                                         {kSpecRates, delta.rates},
                                                         {kSpecSigmoidGate, delta.sigmoid_gate}}));
  builder.putSlot(d.push, kRowInput, delta.qkv);
  builder.putSlot(d.push, kRowAux, delta.z);
  builder.putSlot(d.push, kRowThird, delta.a);
  builder.putSlot(d.push, kRowBeta, delta.b);
  putRow(d.push, kRowOut, out);
  d.push[kPushVector] = builder.vector(delta.decay);
  d.push[kPushVector2] = builder.vector(delta.dt_bias);
  d.push[kPushHeadNorm] = builder.vector(delta.norm);
  builder.dispatch(std::move(d));
  return {};
}

} // namespace

artifact::GpuDispatchT walkTokens(uint32_t state, uint64_t groups, const GpuBuilder& builder) {
  artifact::GpuDispatchT d;
  d.state = state;
  d.groups = groups;
  d.chunk = builder.maxBatch();
  d.push.resize(kPushWords);
  return d;
}

const GpuOpRow kGpuCausalConv{artifact::Op::CausalConvOp, refuseConv, lowerCausalConv, noLanes, true};
const GpuOpRow kGpuShortConv{artifact::Op::ShortConvOp, refuseConv, lowerShortConv, noLanes, true};
const GpuOpRow kGpuGatedDelta{artifact::Op::GatedDeltaOp, refuseDelta, lowerDelta, noLanes, true};

} // namespace cortiq::compiler
