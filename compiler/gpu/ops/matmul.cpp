#include <algorithm>
#include <tuple>

#include "compiler/gpu/Product.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refusePart(const artifact::MatmulPartT& part, const GpuBuilder& builder) {
  if (std::string reason = refuseMatrix("matmul", part.weight, builder); !reason.empty())
    return reason;
  if (part.out_column % 4 != 0 || part.residual_column % 4 != 0)
    return "its columns are not aligned";
  return refuseVector(part.bias, builder);
}

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  for (const auto& part : op.AsMatmulOp()->parts)
    if (std::string reason = refusePart(*part, builder); !reason.empty())
      return reason;
  return {};
}

// For few tokens, some and many: of the last only tall matrices have workgroups enough for all processors
// (docs/performance.md).
constexpr HalfShape kHalfShapes[] = {
    {.rows = 64, .tokens = 32, .subRows = 32, .subTokens = 32, .ahead = 2, .sets = 1},
    {.rows = 64, .tokens = 64, .subRows = 32, .subTokens = 32, .ahead = 2, .sets = 1},
    {.rows = 128, .tokens = 128, .subRows = 64, .subTokens = 32, .ahead = 2, .sets = 1},
};
constexpr uint64_t kTallRows = 8192;

/// What runs where there are several tokens.
Status addMany(const artifact::WeightT& weight, uint64_t rows, bool eightBits, GpuBuilder& builder, Constants constants,
               artifact::GpuDispatchT& d) {
  const std::string tiles = eightBits ? codecTemplate("matmul_tile_i8", weight) : std::string();
  uint32_t tokens = kManyTokens;
  if (!tiles.empty()) {
    setShape(kTileShape, constants);
    d.many_groups = kTileShape.groups(rows);
    tokens = kTileTokens;
  }
  if (eightBits) {
    CORTIQ_RETURN_IF_ERROR(addWide(weight, rows, {}, builder, constants, d));
    CORTIQ_RETURN_IF_ERROR(
        addHalf(weight, rows, std::span(kHalfShapes).first(rows >= kTallRows ? 3 : 2), builder, constants, d));
  }
  constants.push_back({kSpecTokens, tokens});
  const std::string name = !tiles.empty() ? tiles : codecTemplate(eightBits ? "matmul_i8" : "matmul", weight);
  CORTIQ_ASSIGN_OR_RETURN(d.many_module, builder.module(name, std::move(constants)));
  d.many_chunk = tokens;
  return {};
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  for (const auto& part : op.AsMatmulOp()->parts)
    CORTIQ_RETURN_IF_ERROR(lowerProduct(*part, builder, nullptr));
  return {};
}

// Only whole rows can be in lane order.
std::vector<uint32_t> lanes(const artifact::OpUnion& op) {
  std::vector<uint32_t> slots, not_ours;
  for (const auto& part : op.AsMatmulOp()->parts) {
    (part->input_column == 0 ? slots : not_ours).push_back(part->input);
    not_ours.push_back(part->residual);
  }
  std::erase_if(slots, [&](uint32_t slot) { return std::ranges::find(not_ours, slot) != not_ours.end(); });
  return slots;
}

} // namespace

namespace {

/// Rows of a product of one part.
StatusOr<artifact::GpuDispatchT> productOf(const artifact::MatmulPartT& part, const RowRange& range,
                                           GpuBuilder& builder, const artifact::NormOpT* norm) {
  const artifact::WeightT& weight = builder.weight(part.weight);
  const bool eightBits = builder.eightBits(part.input);
  const bool quantized = norm && quantizes(*norm, builder);
  const std::string name = codecTemplate(eightBits ? "matmul_i8" : "matmul", weight);
  CORTIQ_ASSIGN_OR_RETURN(const GpuPlace input, builder.inLanes(part.input, part.input_column, weight.cols));
  const QuantShape quant = quantShape(weight, {.ofOneToken = builder.single(), .eightBits = eightBits});
  const ProductShape shape = quantized ? quant.shape : productShape(range.rows, weight.cols, eightBits);
  Constants constants = shapeConstants(range.rows, weight.cols, shape);
  artifact::GpuDispatchT d;
  d.push.resize(kPushWords);
  d.groups = d.many_groups = shape.groups(range.rows);
  d.slice = range.slice;
  putRow(d.push, kRowInput, input);
  builder.putSlot(d.push, kRowOut, part.out, part.out_column + range.first);
  d.push[kPushVector] = builder.vector(part.bias) + static_cast<uint32_t>(range.first);
  constants.push_back({kSpecBias, part.bias != kAbsent});
  constants.push_back({kSpecResidual, part.residual != kAbsent});
  builder.putSlot(d.push, kRowAux, part.residual, part.residual_column + range.first);
  addNormIn(builder.unfinished(part.input), constants, d);
  if (quantized)
    constants.push_back({kSpecAhead, quant.ahead});
  if (norm)
    CORTIQ_RETURN_IF_ERROR(addNormOut(*norm, d.groups, builder, constants, d));
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module(name, constants));
  if (!builder.single())
    CORTIQ_RETURN_IF_ERROR(addMany(weight, range.rows, eightBits, builder, constants, d));
  CORTIQ_ASSIGN_OR_RETURN(d.weight, builder.matrix(part.weight));
  return d;
}

/// Rows of activation(gate) * up.
StatusOr<artifact::GpuDispatchT> gatedPairOf(const artifact::MatmulPartT& gate, const artifact::MatmulPartT& up,
                                             const artifact::GluOpT& glu, const RowRange& range, uint32_t slice2,
                                             GpuBuilder& builder) {
  const artifact::WeightT& weight = builder.weight(gate.weight);
  const uint32_t result = glu.out != kAbsent ? glu.out : glu.act_out, first = static_cast<uint32_t>(range.first);
  const bool eightBits = builder.eightBits(gate.input), quantized = builder.eightBits(result);
  const QuantShape quant = quantShape(weight, {.ofOneToken = true, .eightBits = eightBits, .matrices = 2});
  const ProductShape shape = quantized ? quant.shape : productShape(range.rows, weight.cols, eightBits);
  CORTIQ_ASSIGN_OR_RETURN(const GpuPlace input, builder.inLanes(gate.input, gate.input_column, weight.cols));
  const GpuPlace out = builder.place(result, range.first);
  Constants constants = shapeConstants(range.rows, weight.cols, shape);
  artifact::GpuDispatchT d;
  d.push.resize(kPushWords);
  d.groups = shape.groups(range.rows);
  d.slice = range.slice;
  d.slice2 = slice2;
  putRow(d.push, kRowInput, input);
  putRow(d.push, kRowOut, out);
  d.push[kPushVector] = builder.vector(gate.bias) + first;
  d.push[kPushVector2] = builder.vector(up.bias) + first;
  constants.push_back({kSpecBias, gate.bias != kAbsent});
  constants.push_back({kSpecPair, 1});
  constants.push_back({kSpecOutOrder, out.lanes ? 1u : 0u});
  constants.push_back({kSpecActivation, static_cast<uint32_t>(glu.activation)});
  constants.push_back({kSpecAlpha, bitsOf(glu.alpha)});
  constants.push_back({kSpecLimit, bitsOf(glu.limit)});
  addNormIn(builder.unfinished(gate.input), constants, d);
  if (quantized) {
    constants.push_back({kSpecQuantOut, 1});
    constants.push_back({kSpecAhead, quant.ahead});
  }
  CORTIQ_ASSIGN_OR_RETURN(d.module_,
                          builder.module(codecTemplate(eightBits ? "matmul_i8" : "matmul", weight), constants));
  CORTIQ_ASSIGN_OR_RETURN(d.weight, builder.matrix(gate.weight));
  CORTIQ_ASSIGN_OR_RETURN(d.weight2, builder.matrix(up.weight));
  return d;
}

// Slices of rows are whole groups of rows, of rows in lane order whole blocks of those.
constexpr uint64_t kSliceRows = 16;

} // namespace

Status lowerProduct(const artifact::MatmulPartT& part, GpuBuilder& builder, const artifact::NormOpT* norm) {
  CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT whole,
                          productOf(part, {0, builder.weight(part.weight).rows}, builder, norm));
  if (!norm) {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<RowRange> slices, builder.slices(part.weight, kSliceRows));
    for (const RowRange& range : slices) {
      CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT slice, productOf(part, range, builder, norm));
      builder.addPart(whole, std::move(slice));
    }
  }
  builder.dispatch(std::move(whole));
  return {};
}

Status lowerGatedPair(const artifact::MatmulPartT& gate, const artifact::MatmulPartT& up, const artifact::GluOpT& glu,
                      GpuBuilder& builder) {
  const uint64_t rows = builder.weight(gate.weight).rows;
  const uint32_t result = glu.out != kAbsent ? glu.out : glu.act_out;
  CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT whole, gatedPairOf(gate, up, glu, {0, rows}, kAbsent, builder));
  if (!builder.eightBits(result)) {
    const uint64_t step = builder.place(result).lanes ? kShaderRowPadding : kSliceRows;
    // Both are bound at once: each has half of what can be.
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<RowRange> first, builder.slices(gate.weight, step, 2));
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<RowRange> second, builder.slices(up.weight, step, 2));
    for (size_t i = 0; i < first.size() && first.size() == second.size(); ++i) {
      CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT slice,
                              gatedPairOf(gate, up, glu, first[i], second[i].slice, builder));
      builder.addPart(whole, std::move(slice));
    }
  }
  builder.dispatch(std::move(whole));
  return {};
}

const GpuOpRow kGpuMatmul{artifact::Op::MatmulOp, refuse, lower, lanes, false};

} // namespace cortiq::compiler
