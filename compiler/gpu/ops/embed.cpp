#include <algorithm>
#include <tuple>

#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

constexpr uint32_t kLocal = 64;

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  return refuseMatrix("embed", op.AsEmbedOp()->weight, builder);
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::EmbedOpT& embed = *op.AsEmbedOp();
  const artifact::WeightT& weight = builder.weight(embed.weight);
  const GpuPlace out = builder.place(embed.out);
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(d.module_,
                          builder.module(codecTemplate("embed", weight), {{kSpecLocal, kLocal},
                                                                          {kSpecRows, uint32_t(weight.rows)},
                                                                          {kSpecCols, uint32_t(weight.cols)},
                                                                          {kSpecOutOrder, out.lanes ? 1u : 0u},
                                                                          {kSpecScale, bitsOf(embed.scale)}}));
  d.groups = ceilDiv(ceilDiv(weight.cols, 32), kLocal);
  CORTIQ_ASSIGN_OR_RETURN(d.weight, builder.matrix(embed.weight));
  d.push.resize(kPushWords);
  putRow(d.push, kRowOut, out);
  builder.dispatch(std::move(d));
  return {};
}

} // namespace

const GpuOpRow kGpuEmbed{artifact::Op::EmbedOp, refuse, lower, noLanes, false};

} // namespace cortiq::compiler
