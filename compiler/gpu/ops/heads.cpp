#include "compiler/gpu/GpuBuilder.h"

// Heads put together of two parts, and logits in two levels.

namespace cortiq::compiler {
namespace {

using namespace formats;

constexpr uint32_t kLocal = 128;

std::string take(const artifact::OpUnion&, const GpuBuilder&) {
  return {};
}

Status lowerConcat(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::ConcatHeadsOpT& concat = *op.AsConcatHeadsOp();
  const uint64_t a = builder.elements(concat.a), b = builder.elements(concat.b), out = builder.elements(concat.out);
  const bool shared = a * concat.heads + b == out;
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(
      d.module_, builder.module("concat_heads", {{kSpecLocal, kLocal},
                                                 {kSpecRows, static_cast<uint32_t>(shared ? a : a / concat.heads)},
                                                 {kSpecCols, static_cast<uint32_t>(b / concat.heads)},
                                                 {kSpecHeads, concat.heads},
                                                 {kSpecShared, shared}}));
  d.groups = ceilDiv(out, kLocal);
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, concat.a);
  builder.putSlot(d.push, kRowAux, concat.b);
  builder.putSlot(d.push, kRowOut, concat.out);
  builder.dispatch(std::move(d));
  return {};
}

Status lowerClusters(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::ClusterLogitsOpT& entry = *op.AsClusterLogitsOp();
  const uint64_t clusters = builder.elements(entry.clusters);
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(
      d.module_, builder.module("cluster_logits",
                                {{kSpecLocal, kLocal},
                                 {kSpecRows, static_cast<uint32_t>(clusters)},
                                 {kSpecGroup, static_cast<uint32_t>(builder.elements(entry.logits) / clusters)}}));
  d.groups = clusters;
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, entry.clusters);
  builder.putSlot(d.push, kRowOut, entry.logits);
  builder.dispatch(std::move(d));
  return {};
}

} // namespace

const GpuOpRow kGpuConcatHeads{artifact::Op::ConcatHeadsOp, take, lowerConcat, noLanes, false};
const GpuOpRow kGpuClusterLogits{artifact::Op::ClusterLogitsOp, take, lowerClusters, noLanes, false};

} // namespace cortiq::compiler
