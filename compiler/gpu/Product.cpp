#include "compiler/gpu/Product.h"

#include <algorithm>
#include <bit>
#include <span>

namespace cortiq::compiler {

using namespace formats;

// Shapes that were quickest for every codec on a device of 132 processors (docs/performance.md): where there are
// several workgroups for each, registers decide how many run side by side; where there is one, it has all invocations
// that there can be, and where a lane has few groups they are asked for at once.
QuantShape quantShape(const artifact::WeightT& weight, const QuantProduct& product) {
  constexpr uint64_t kRows = 32, kProcessors = 132;
  constexpr CodecId kNarrow[] = {CodecId::kQ4_0, CodecId::kQ4Block, CodecId::kQ4Tiled};
  const auto isOneOf = [&](std::span<const CodecId> list) {
    return std::ranges::any_of(list, [&](CodecId id) { return static_cast<uint16_t>(id) == weight.codec; });
  };
  const auto runs = static_cast<uint32_t>(ceilDiv(product.choices * ceilDiv(weight.cols, 32), 32));
  const auto evenly = [&](uint32_t most) {
    return static_cast<uint32_t>(ceilDiv(runs, ceilDiv(runs, std::min(runs, most))));
  };
  if (!product.ofOneToken || !product.eightBits)
    return {{1024, 32, 1}, 1};
  if (product.experts && product.matrices > 1)
    return {{1024, 32, 1}, evenly(2)};
  // Levels that are looked up want one large workgroup a processor, with copies of the table for all lanes.
  constexpr CodecId kLookedUp[] = {CodecId::kIQ4_NL, CodecId::kIQ4_XS};
  if (product.matrices > 1 && isOneOf(kLookedUp))
    return {{1024, 32, 2}, 1};
  if (product.matrices > 1 || ceilDiv(weight.rows, kRows) > kProcessors)
    return {{512, 32, 2}, 1};
  if (product.experts ? isOneOf(kNarrow) : runs <= 4)
    return {{512, 32, 2}, evenly(4)};
  return {{1024, 32, 1}, evenly(2)};
}

// A lane takes groups of 32 weights: no more lanes than there are. Matrices of few rows fill the device by more
// workgroups, tall ones save activations by more rows a team.
ProductShape productShape(uint64_t rows, uint64_t cols, bool eightBits) {
  const uint32_t most = std::bit_ceil(static_cast<uint32_t>(std::max<uint64_t>(1, ceilDiv(cols, 32))));
  const uint32_t teamRows = eightBits ? 1 : rows >= 16384 ? 4 : rows >= 8192 ? 2 : 1;
  return {rows >= 65536 ? 128u : 256u, eightBits ? 32u : std::min(32u, most), teamRows};
}

void setShape(const ProductShape& shape, Constants& constants) {
  std::erase_if(constants, [](const codegen::SpecValue& c) {
    return c.id == kSpecLocal || c.id == kSpecLanes || c.id == kSpecTeamRows;
  });
  constants.push_back({kSpecLocal, shape.local});
  constants.push_back({kSpecLanes, shape.lanes});
  constants.push_back({kSpecTeamRows, shape.teamRows});
}

Status addWide(const artifact::WeightT& weight, uint64_t rows, WideShape shape, GpuBuilder& builder,
               Constants constants, artifact::GpuDispatchT& d) {
  const std::string name = codecTemplate("matmul_cm_i8", weight);
  if (name.empty())
    return {};
  constexpr uint32_t kAhead = 2, kSets = 1; // more of either costs workgroups side by side
  const uint32_t local = shape.rows * shape.matrices * shape.tokens / 32; // 32 by 32 a subgroup of 32
  setShape({local, kTileShape.lanes, shape.rows * 32 / local}, constants);
  std::erase_if(constants, [](const codegen::SpecValue& c) { return c.id == kSpecTokens || c.id == kSpecAhead; });
  constants.push_back({kSpecTokens, shape.tokens});
  constants.push_back({kSpecAhead, kAhead});
  constants.push_back({kSpecSets, kSets});
  CORTIQ_ASSIGN_OR_RETURN(d.wide_module, builder.module(name, std::move(constants)));
  d.wide_groups = ceilDiv(rows, shape.rows);
  d.wide_chunk = shape.tokens;
  return {};
}

Status addHalf(const artifact::WeightT& weight, uint64_t rows, std::span<const HalfShape> shapes, GpuBuilder& builder,
               const Constants& constants, artifact::GpuDispatchT& d) {
  const std::string name = codecTemplate("matmul_cm_half", weight);
  if (name.empty() || !builder.half())
    return {};
  for (const HalfShape& shape : shapes) {
    // What an invocation of the shader has names for.
    constexpr uint64_t kMostWeights = 4, kMostInputs = 8;
    if (uint64_t{shape.ahead} * shape.rows * 2 > kMostWeights * shape.local() ||
        uint64_t{4} * shape.ahead * shape.tokens > kMostInputs * shape.local())
      return internal_error("a tile of halves asks for more at a time than its shader can");
    Constants own = constants;
    setShape({shape.local(), kTileShape.lanes, shape.rows * 32 / shape.local()}, own);
    std::erase_if(own, [](const codegen::SpecValue& c) { return c.id == kSpecTokens || c.id == kSpecAhead; });
    own.insert(own.end(), {{kSpecTokens, shape.tokens},
                           {kSpecAhead, shape.ahead},
                           {kSpecSets, shape.sets},
                           {kSpecSubRows, shape.subRows},
                           {kSpecSubTokens, shape.subTokens},
                           {kSpecRings, shape.rings}});
    auto form = std::make_unique<artifact::GpuFormT>();
    CORTIQ_ASSIGN_OR_RETURN(form->module_, builder.module(name, std::move(own)));
    form->groups = ceilDiv(rows, shape.rows);
    form->chunk = shape.chunk ? shape.chunk : shape.tokens;
    d.half.push_back(std::move(form));
  }
  return {};
}

Constants shapeConstants(uint64_t rows, uint64_t cols, const ProductShape& shape) {
  return {{kSpecLocal, shape.local},
          {kSpecRows, uint32_t(rows)},
          {kSpecCols, uint32_t(cols)},
          {kSpecLanes, shape.lanes},
          {kSpecTeamRows, shape.teamRows}};
}

void addNormIn(const GpuBuilder::Unfinished* norm, Constants& constants, artifact::GpuDispatchT& d) {
  if (!norm)
    return;
  constants.push_back({kSpecNormIn, norm->parts});
  constants.push_back({kSpecEps, bitsOf(norm->eps)});
  d.push[kPushSquaresIn] = norm->squares;
}

bool quantizes(const artifact::NormOpT& norm, const GpuBuilder& builder) {
  return (norm.out != kAbsent && builder.eightBits(norm.out)) ||
         (norm.act_out != kAbsent && builder.eightBits(norm.act_out));
}

Status addNormOut(const artifact::NormOpT& norm, uint64_t groups, GpuBuilder& builder, Constants& constants,
                  artifact::GpuDispatchT& d) {
  const bool both = norm.out != kAbsent && norm.act_out != kAbsent;
  const uint32_t slot = norm.out != kAbsent ? norm.out : norm.act_out;
  const GpuPlace out = builder.place(slot);
  constants.push_back({kSpecNormOut, 1});
  if (quantizes(norm, builder))
    constants.push_back({kSpecQuantOut, both ? 2u : 1u});
  CORTIQ_ASSIGN_OR_RETURN(const uint32_t squares, builder.squares(groups));
  const GpuBuilder::Unfinished left{squares, static_cast<uint32_t>(groups), norm.eps};
  d.push[kPushSquaresOut] = squares;
  putRow(d.push, kRowThird, out);
  d.push[kPushVector2] = builder.vector(norm.weight);
  builder.leaveUnfinished(slot, left);
  if (both) {
    d.push[kPushEightBits] = builder.place(norm.act_out).start;
    builder.leaveUnfinished(norm.act_out, left);
  }
  return {};
}

} // namespace cortiq::compiler
