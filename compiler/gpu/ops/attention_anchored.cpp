#include "compiler/gpu/GpuBuilder.h"

// Attention that sees windows of head groups, or anchors: keys and values that stand in the weights.

namespace cortiq::compiler {

using namespace formats;

bool isAnchored(const artifact::AttentionOpT& attention) {
  return attention.sink_count != 0 || !attention.group_windows.empty();
}

std::string refuseAnchored(const artifact::AttentionOpT& attention, const GpuBuilder& builder) {
  constexpr uint32_t kMostValues = 1024; // invocations have eight each
  if (builder.program().kv_layers[attention.layer]->v_dim > kMostValues)
    return "its heads are too wide for windows and anchors";
  return refuseVectors({attention.sinks, attention.sink_k, attention.sink_v}, builder);
}

namespace {

Status dispatchAnchored(const artifact::AttentionOpT& attention, const GpuPlace& out, bool eightBits,
                        GpuBuilder& builder) {
  constexpr uint32_t kLocal = 128;
  artifact::GpuDispatchT d;
  std::vector<codegen::SpecValue> constants = attentionConstants(attention, kLocal, out, builder);
  constants.insert(constants.end(), {{kSpecQuantOut, eightBits},
                                     {kSpecAnchors, attention.sink_count},
                                     {kSpecWindows, !attention.group_windows.empty()}});
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("attention_anchored", std::move(constants)));
  d.groups = attention.heads;
  d.layer = attention.layer;
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, attention.q, attention.q_column);
  builder.putSlot(d.push, kRowAux, attention.q_still);
  putRow(d.push, kRowOut, out);
  d.push[kPushVector] = builder.vector(attention.sinks);
  d.push[kPushAnchorKeys] = builder.vector(attention.sink_k);
  d.push[kPushAnchorValues] = builder.vector(attention.sink_v);
  if (!attention.group_windows.empty())
    d.push[kPushWindows] = builder.words({attention.group_windows.begin(), attention.group_windows.end()});
  builder.dispatch(std::move(d));
  return {};
}

} // namespace

Status lowerAnchored(const artifact::AttentionOpT& attention, GpuBuilder& builder) {
  const uint32_t result = attention.out != kAbsent ? attention.out : attention.act_out;
  return builder.makeResult(result, builder.elements(result), 1, [&](const GpuPlace& out, bool eightBits) {
    return dispatchAnchored(attention, out, eightBits, builder);
  });
}

} // namespace cortiq::compiler
