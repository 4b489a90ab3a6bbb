#include <algorithm>
#include <tuple>

#include "compiler/gpu/Product.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

constexpr uint32_t kLocal = 128, kEach = 8; // invocations a workgroup, and a group of 32 weights

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  return refuseMatrix("embed", op.AsEmbedOp()->weight, builder);
}

/// `made`: what is the same for all ranges of rows.
StatusOr<artifact::GpuDispatchT> rowsOf(const artifact::EmbedOpT& embed, const RowRange& range, Constants constants,
                                        artifact::GpuDispatchT made, GpuBuilder& builder) {
  constants.push_back({kSpecRows, uint32_t(range.rows)});
  constants.push_back({kSpecFirstRow, uint32_t(range.first)});
  CORTIQ_ASSIGN_OR_RETURN(made.module_,
                          builder.module(codecTemplate("embed", builder.weight(embed.weight)), std::move(constants)));
  made.slice = range.slice;
  CORTIQ_ASSIGN_OR_RETURN(made.weight, builder.matrix(embed.weight));
  return made;
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  return lowerEmbed(*op.AsEmbedOp(), builder, nullptr);
}

} // namespace

Status lowerEmbed(const artifact::EmbedOpT& embed, GpuBuilder& builder, const artifact::NormOpT* norm) {
  const artifact::WeightT& weight = builder.weight(embed.weight);
  const GpuPlace out = builder.place(embed.out);
  Constants constants{{kSpecLocal, kLocal},
                      {kSpecCols, uint32_t(weight.cols)},
                      {kSpecAllRows, uint32_t(weight.rows)},
                      {kSpecOutOrder, out.lanes ? 1u : 0u},
                      {kSpecScale, bitsOf(embed.scale)}};
  artifact::GpuDispatchT d;
  d.groups = ceilDiv(ceilDiv(weight.cols, 32), kLocal / kEach);
  d.push.resize(kPushWords);
  if (norm)
    CORTIQ_RETURN_IF_ERROR(addNormOut(*norm, d.groups, builder, constants, d));
  putRow(d.push, kRowOut, out);
  CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT whole, rowsOf(embed, {0, weight.rows}, constants, d, builder));
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<RowRange> slices, builder.slices(embed.weight, 1));
  for (const RowRange& range : slices) {
    CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT slice, rowsOf(embed, range, constants, d, builder));
    builder.addPart(whole, std::move(slice));
  }
  builder.dispatch(std::move(whole));
  return {};
}

const GpuOpRow kGpuEmbed{artifact::Op::EmbedOp, refuse, lower, noLanes, false};

} // namespace cortiq::compiler
