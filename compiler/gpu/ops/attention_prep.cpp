#include <algorithm>
#include <tuple>

#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  const artifact::AttentionPrepOpT& prep = *op.AsAttentionPrepOp();
  const artifact::KvLayerT& cache = *builder.program().kv_layers[prep.layer];
  if (cache.k_dim % 2 != 0 || cache.v_dim % 2 != 0)
    return "heads are of odd width";
  return refuseVectors({prep.q_norm, prep.k_norm}, builder);
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::AttentionPrepOpT& prep = *op.AsAttentionPrepOp();
  const artifact::KvLayerT& cache = *builder.program().kv_layers[prep.layer];
  const HeadPrep made = headPrep(prep, builder);
  artifact::GpuDispatchT d;
  std::vector<codegen::SpecValue> constants = {{kSpecLocal, 64},
                                               {kSpecHeads, prep.heads},
                                               {kSpecKvHeads, cache.kv_heads},
                                               {kSpecHeadDim, prep.head_dim},
                                               {kSpecValueDim, cache.v_dim},
                                               {kSpecPairs, made.pairs},
                                               {kSpecRing, builder.ring(prep.layer)},
                                               builder.cacheKind(),
                                               {kSpecTemperatureLength, bitsOf(prep.temperature_length)},
                                               {kSpecTemperatureScale, bitsOf(prep.temperature_scale)}};
  if (!builder.single() && made.flags == 0 && made.pairs % 2 == 0 && prep.q_still == kAbsent) {
    constants[0].value = 256;
    CORTIQ_ASSIGN_OR_RETURN(d.many_module, builder.module("rope_kv_row", constants));
    d.many_groups = 1;
    constants[0].value = 64;
  }
  constants.insert(
      constants.end(),
      {{kSpecNormFlags, made.flags}, {kSpecEps, bitsOf(prep.norm_eps)}, {kSpecStill, prep.q_still != kAbsent}});
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("rope_kv", std::move(constants)));
  d.groups = prep.heads + 2 * cache.kv_heads;
  d.layer = prep.layer;
  d.push.resize(kPushWords);
  made.put(d.push);
  builder.putSlot(d.push, kRowOut, prep.q_still);
  builder.dispatch(std::move(d));
  return {};
}

} // namespace

HeadPrep headPrep(const artifact::AttentionPrepOpT& prep, GpuBuilder& builder) {
  HeadPrep out{};
  if (prep.rope != kAbsent) {
    out.pairs = uint32_t(builder.program().rope_tables[prep.rope]->inverse_frequencies.size());
    std::tie(out.cosines, out.sines) = builder.rotation(prep.rope);
  }
  out.flags = (prep.q_norm != kAbsent ? kNormQ : 0) | (prep.k_norm != kAbsent ? kNormK : 0) |
              (prep.norm_after_rope ? kNormAfterRope : 0) | (prep.v_norm ? kNormV : 0);
  out.qNorm = builder.vector(prep.q_norm);
  out.kNorm = builder.vector(prep.k_norm);
  out.q = builder.place(prep.q, prep.q_column);
  out.k = builder.place(prep.k, prep.k_column);
  out.v = builder.place(prep.v, prep.v_column);
  return out;
}

void HeadPrep::put(std::vector<uint32_t>& push) const {
  putRow(push, kRowInput, q);
  putRow(push, kRowAux, k);
  putRow(push, kRowThird, v);
  push[kPushVector] = qNorm;
  push[kPushVector2] = kNorm;
  push[kPushCosines] = cosines;
  push[kPushSines] = sines;
}

const GpuOpRow kGpuAttentionPrep{artifact::Op::AttentionPrepOp, refuse, lower, noLanes, false};

} // namespace cortiq::compiler
