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

StatusOr<artifact::GpuDispatchT> rowsOf(const artifact::EmbedOpT& embed, const RowRange& range, GpuBuilder& builder) {
  const artifact::WeightT& weight = builder.weight(embed.weight);
  const GpuPlace out = builder.place(embed.out);
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(d.module_,
                          builder.module(codecTemplate("embed", weight), {{kSpecLocal, kLocal},
                                                                          {kSpecRows, uint32_t(range.rows)},
                                                                          {kSpecCols, uint32_t(weight.cols)},
                                                                          {kSpecFirstRow, uint32_t(range.first)},
                                                                          {kSpecAllRows, uint32_t(weight.rows)},
                                                                          {kSpecOutOrder, out.lanes ? 1u : 0u},
                                                                          {kSpecScale, bitsOf(embed.scale)}}));
  d.groups = ceilDiv(ceilDiv(weight.cols, 32), kLocal);
  d.slice = range.slice;
  CORTIQ_ASSIGN_OR_RETURN(d.weight, builder.matrix(embed.weight));
  d.push.resize(kPushWords);
  putRow(d.push, kRowOut, out);
  return d;
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::EmbedOpT& embed = *op.AsEmbedOp();
  CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT whole, rowsOf(embed, {0, builder.weight(embed.weight).rows}, builder));
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<RowRange> slices, builder.slices(embed.weight, 1));
  for (const RowRange& range : slices) {
    CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT slice, rowsOf(embed, range, builder));
    builder.addPart(whole, std::move(slice));
  }
  builder.dispatch(std::move(whole));
  return {};
}

} // namespace

const GpuOpRow kGpuEmbed{artifact::Op::EmbedOp, refuse, lower, noLanes, false};

} // namespace cortiq::compiler
