#include <algorithm>
#include <tuple>

#include "compiler/gpu/Product.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  const artifact::AttentionOpT& attention = *op.AsAttentionOp();
  if (attention.out != kAbsent && attention.act_out != kAbsent)
    return "attention with two results";
  if (isAnchored(attention))
    return refuseAnchored(attention, builder);
  return refuseVector(attention.sinks, builder);
}

struct Dispatch {
  artifact::GpuDispatchT row;
  std::vector<codegen::SpecValue> constants;
};

// Of one token: more invocations take positions side by side.
constexpr uint32_t kLocalSingle = 128, kLocalShare = 256, kLocalMany = 128;
constexpr uint32_t kAheadSingle = 4, kAheadShare = 8; // positions that a team of it asks for at a time

uint32_t resultOf(const artifact::AttentionOpT& attention) {
  return attention.out != kAbsent ? attention.out : attention.act_out;
}

Dispatch attentionDispatch(const artifact::AttentionOpT& attention, const GpuPlace& out, GpuBuilder& builder) {
  Dispatch d;
  const uint32_t local = !builder.single() ? kLocalMany : builder.far() ? kLocalShare : kLocalSingle;
  d.constants = attentionConstants(attention, local, out, builder);
  d.row.groups = attention.heads;
  d.row.layer = attention.layer;
  d.row.push.resize(kPushWords);
  builder.putSlot(d.row.push, kRowInput, attention.q, attention.q_column);
  putRow(d.row.push, kRowOut, out);
  return d;
}

/// The shares of a head's positions are joined by a dispatch of a step more.
Status addShares(const artifact::AttentionOpT& attention, uint32_t shares, GpuBuilder& builder, Dispatch& d) {
  const uint32_t valueDim = builder.program().kv_layers[attention.layer]->v_dim;
  const GpuPlace parts = builder.scratch(uint64_t{attention.heads} * shares * (valueDim + 2));
  builder.noteCut();
  d.constants.push_back({kSpecShares, shares});
  d.row.groups_y = shares;
  d.row.push[kPushShares] = parts.start;
  // The last workgroup of a head joins its shares, if there is a counter for each.
  if (attention.heads <= kCounterWords) {
    d.constants.push_back({kSpecJoin, 1});
    d.row.push[kPushCounters] = 0;
    return {};
  }
  const uint32_t result = resultOf(attention);
  const GpuPlace out = builder.place(result);
  artifact::GpuDispatchT join;
  CORTIQ_ASSIGN_OR_RETURN(join.module_,
                          builder.module("attention_combine", {{kSpecLocal, std::max(64u, valueDim)},
                                                               {kSpecHeads, attention.heads},
                                                               {kSpecValueDim, valueDim},
                                                               {kSpecShares, shares},
                                                               {kSpecOutOrder, out.lanes ? 1u : 0u},
                                                               {kSpecQuantOut, builder.eightBits(result)}}));
  join.groups = attention.heads;
  join.push.resize(kPushWords);
  join.push[kPushShares] = parts.start;
  putRow(join.push, kRowOut, out);
  builder.dispatchBehind(std::move(join));
  return {};
}

/// What runs where there are several tokens: a workgroup takes some of them, and reads keys and values once for all.
Status addTile(const artifact::AttentionOpT& attention, GpuBuilder& builder, Dispatch& d) {
  constexpr uint32_t kTileTokens = 16, kMostDim = 256; // what fits shared memory
  const artifact::KvLayerT& cache = *builder.program().kv_layers[attention.layer];
  if (std::max(attention.head_dim, cache.v_dim) > kMostDim)
    return {};
  d.constants.push_back({kSpecTokens, kTileTokens});
  CORTIQ_ASSIGN_OR_RETURN(d.row.many_module, builder.module("attention_tile", d.constants));
  d.row.many_groups = d.row.groups;
  d.row.many_chunk = kTileTokens;
  return {};
}

/// Whether prompts on 16-bit matrices have a shader of their own for it.
bool takesMatrices(const artifact::AttentionOpT& attention, const GpuBuilder& builder) {
  constexpr uint32_t kMostDim = 256; // what fits shared memory and registers
  const uint32_t valueDim = builder.program().kv_layers[attention.layer]->v_dim;
  return builder.half() && valueDim % 4 == 0 && std::max(attention.head_dim, valueDim) <= kMostDim;
}

StatusOr<artifact::GpuFormT> matricesForm(Dispatch d, RowForm form, GpuBuilder& builder) {
  constexpr uint32_t kLocal = 256, kTokens = 64;
  std::ranges::find(d.constants, kSpecLocal, &codegen::SpecValue::id)->value = kLocal;
  d.constants.push_back({kSpecQuantOut, static_cast<uint32_t>(form)});
  artifact::GpuFormT out;
  CORTIQ_ASSIGN_OR_RETURN(out.module_, builder.module("attention_cm", std::move(d.constants)));
  out.groups = d.row.groups;
  out.chunk = kTokens;
  return out;
}

Status dispatchAttention(const artifact::AttentionOpT& attention, const GpuPlace& out, bool eightBits,
                         GpuBuilder& builder) {
  Dispatch d = attentionDispatch(attention, out, builder);
  d.row.push[kPushVector] = builder.vector(attention.sinks);
  if (takesMatrices(attention, builder) && !eightBits) {
    CORTIQ_ASSIGN_OR_RETURN(artifact::GpuFormT form, matricesForm(d, RowForm::kFloats, builder));
    d.row.half.push_back(std::make_unique<artifact::GpuFormT>(std::move(form)));
  }
  if (eightBits)
    d.constants.push_back({kSpecQuantOut, 1});
  CORTIQ_ASSIGN_OR_RETURN(d.row.module_, builder.module("attention", d.constants));
  if (!builder.single())
    CORTIQ_RETURN_IF_ERROR(addTile(attention, builder, d));
  builder.dispatch(std::move(d.row));
  return {};
}

/// What makes rows in f16, which steps of prompts alone read.
Status dispatchMatrices(const artifact::AttentionOpT& attention, const GpuPlace& out, GpuBuilder& builder) {
  Dispatch d = attentionDispatch(attention, out, builder);
  d.row.push[kPushVector] = builder.vector(attention.sinks);
  CORTIQ_ASSIGN_OR_RETURN(const artifact::GpuFormT form, matricesForm(d, RowForm::kHalf, builder));
  d.row.module_ = form.module_;
  d.row.chunk = form.chunk;
  builder.dispatch(std::move(d.row));
  return {};
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::AttentionOpT& attention = *op.AsAttentionOp();
  if (isAnchored(attention))
    return lowerAnchored(attention, builder);
  if (takesMatrices(attention, builder))
    return builder.makeRow(resultOf(attention), [&](const GpuPlace& out, RowForm form) {
      return form == RowForm::kHalf ? dispatchMatrices(attention, out, builder)
                                    : dispatchAttention(attention, out, form == RowForm::kEightBits, builder);
    });
  return builder.makeResult(
      resultOf(attention), builder.elements(resultOf(attention)), 1,
      [&](const GpuPlace& out, bool eightBits) { return dispatchAttention(attention, out, eightBits, builder); });
}

} // namespace

std::vector<codegen::SpecValue> attentionConstants(const artifact::AttentionOpT& attention, uint32_t local,
                                                   const GpuPlace& out, const GpuBuilder& builder) {
  const artifact::KvLayerT& cache = *builder.program().kv_layers[attention.layer];
  return {{kSpecLocal, local},
          {kSpecOutOrder, out.lanes ? 1u : 0u},
          {kSpecScale, bitsOf(attention.scale)},
          {kSpecHeads, attention.heads},
          {kSpecKvHeads, cache.kv_heads},
          {kSpecHeadDim, attention.head_dim},
          {kSpecValueDim, cache.v_dim},
          {kSpecWindow, cache.window},
          {kSpecRing, builder.ring(attention.layer)},
          {kSpecSoftcap, bitsOf(attention.softcap)},
          {kSpecSinks, attention.sinks != kAbsent},
          builder.cacheKind()};
}

uint32_t attentionShares(uint32_t layer, uint32_t heads, const GpuBuilder& builder) {
  const artifact::KvLayerT& cache = *builder.program().kv_layers[layer];
  if (cache.window != 0 && cache.window <= kFarFrom)
    return 1;
  // As many workgroups as a large device runs side by side, of shares that are worth one.
  constexpr uint32_t kWorkgroups = 128, kMost = 16;
  return std::clamp(kWorkgroups / std::max(1u, heads), 1u, kMost);
}

Status lowerAttentionStep(const artifact::AttentionPrepOpT& prep, const artifact::AttentionOpT& attention,
                          GpuBuilder& builder) {
  Dispatch d = attentionDispatch(attention, builder.place(resultOf(attention)), builder);
  const HeadPrep made = headPrep(prep, builder);
  d.constants.push_back({kSpecPrep, 1});
  d.constants.push_back({kSpecAhead, builder.far() ? kAheadShare : kAheadSingle});
  d.constants.push_back({kSpecPairs, made.pairs});
  d.constants.push_back({kSpecNormFlags, made.flags});
  d.constants.push_back({kSpecEps, bitsOf(prep.norm_eps)});
  d.constants.push_back({kSpecTemperatureLength, bitsOf(prep.temperature_length)});
  d.constants.push_back({kSpecTemperatureScale, bitsOf(prep.temperature_scale)});
  if (builder.eightBits(resultOf(attention)))
    d.constants.push_back({kSpecQuantOut, 1});
  made.put(d.row.push);
  d.row.push[kPushSinks] = builder.vector(attention.sinks);
  const uint32_t shares = builder.far() ? attentionShares(prep.layer, attention.heads, builder) : 1;
  if (shares > 1)
    CORTIQ_RETURN_IF_ERROR(addShares(attention, shares, builder, d));
  CORTIQ_ASSIGN_OR_RETURN(d.row.module_, builder.module("attention", d.constants));
  builder.dispatch(std::move(d.row));
  return {};
}

const GpuOpRow kGpuAttention{artifact::Op::AttentionOp, refuse, lower, noLanes, true, EightBits::kWholeGroups};

} // namespace cortiq::compiler
