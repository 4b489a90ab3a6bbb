#include "compiler/gpu/PairExperts.h"

#include <algorithm>
#include <tuple>

#include "compiler/gpu/Product.h"

namespace cortiq::compiler {

using namespace formats;

namespace {

bool contains(const std::vector<uint32_t>& list, uint32_t slot) {
  return std::ranges::find(list, slot) != list.end();
}

/// Experts of one product whose matrices a dispatch can have, by their numbers.
struct ExpertClass {
  std::vector<uint32_t> experts, weights, biases;
};

std::vector<ExpertClass> classesOf(const artifact::MoeMatmulOpT& matmul, const GpuBuilder& builder) {
  using Alike = std::tuple<uint16_t, uint64_t, uint64_t, bool>;
  std::vector<std::pair<Alike, ExpertClass>> out;
  for (uint32_t e = 0; e < matmul.parts.size(); ++e) {
    const artifact::ExpertPartT& part = *matmul.parts[e];
    const artifact::WeightT& weight = builder.weight(part.weight);
    const Alike alike{weight.codec, weight.rows, weight.cols, part.bias != kAbsent};
    auto at = std::ranges::find(out, alike, [](const auto& row) { return row.first; });
    if (at == out.end())
      at = out.insert(out.end(), {alike, {}});
    at->second.experts.push_back(e);
    at->second.weights.push_back(part.weight);
    at->second.biases.push_back(part.bias);
  }
  std::vector<ExpertClass> classes;
  for (auto& [alike, row] : out)
    classes.push_back(std::move(row));
  return classes;
}

/// The slot that has what the experts of `slot` read: on the GPU neither gathering nor column scales make a copy.
uint32_t sourceOf(uint32_t slot, const ExpertGroup& group) {
  if (contains(group.gathered, slot) || slot == group.x)
    return group.x;
  return contains(group.gates, slot) ? group.gated : slot;
}

/// Floats from one pair's row to the next.
uint32_t pairStride(uint32_t slot, const GpuBuilder& builder) {
  const GpuPlace place = builder.place(slot);
  return static_cast<uint32_t>(place.lanes ? laneRow(builder.elements(slot)) : builder.elements(slot));
}

Status lowerClass(const artifact::MoeMatmulOpT& matmul, const ExpertClass& experts, const ExpertGroup& group,
                  GpuBuilder& builder) {
  const artifact::ExpertPartT& part = *matmul.parts[experts.experts[0]];
  const artifact::WeightT& weight = builder.weight(experts.weights[0]);
  const uint32_t source = sourceOf(part.input, group);
  const bool tokens = source == group.x, eightBits = builder.eightBits(source);
  const ProductShape shape = productShape(weight.rows, weight.cols, eightBits);
  Constants constants = shapeConstants(weight, shape);
  artifact::GpuDispatchT d;
  d.push.resize(kPushWords);
  d.groups = shape.groups(weight.rows);
  GpuPlace input = builder.place(source);
  if (tokens) {
    CORTIQ_ASSIGN_OR_RETURN(input, builder.inLanes(source, 0, weight.cols));
  }
  d.push[kPushInput] = input.start;
  d.push[kPushInputStride] = tokens ? input.stride : pairStride(source, builder);
  const GpuPlace out = builder.place(part.out);
  d.push[kPushOut] = out.start;
  d.push[kPushOutStride] = pairStride(part.out, builder);
  constants.push_back({kSpecOutOrder, out.lanes ? 1u : 0u});
  constants.push_back({kSpecExperts, group.chosen});
  constants.push_back({kSpecPlan, tokens ? 1u : 2u});
  constants.push_back({kSpecTokens, kManyTokens});
  d.chunk = kManyTokens;
  d.each = group.chosen;
  d.more = group.experts;
  d.push[kPushRoutes] = builder.place(group.plan->plan).start;
  const bool bias = part.bias != kAbsent;
  constants.push_back({kSpecBias, bias});
  if (bias)
    d.push[kPushVector] = builder.vectors(experts.biases);
  constants.push_back({kSpecResidual, part.sum != kAbsent});
  if (part.sum != kAbsent) {
    d.push[kPushAux] = builder.place(part.sum).start;
    d.push[kPushAuxStride] = pairStride(part.sum, builder);
  }
  if (experts.experts.size() != matmul.parts.size()) {
    std::vector<uint32_t> numbers(matmul.parts.size(), UINT32_MAX);
    for (uint32_t i = 0; i < experts.experts.size(); ++i)
      numbers[experts.experts[i]] = i;
    constants.push_back({kSpecClassed, 1});
    d.push[kPushClass] = builder.words(numbers);
  }
  CORTIQ_ASSIGN_OR_RETURN(const GpuBuilder::Stack stack, builder.stack(experts.weights));
  d.weight = stack.first;
  constants.push_back({kSpecExpertUnits, stack.units});
  if (eightBits) {
    constexpr HalfShape kHalf{
        .rows = 64, .tokens = 32, .subRows = 32, .subTokens = 32, .ahead = 2, .sets = 1, .chunk = kManyTokens};
    CORTIQ_RETURN_IF_ERROR(addHalf(weight, weight.rows, {&kHalf, 1}, builder, constants, d));
  }
  CORTIQ_ASSIGN_OR_RETURN(
      d.module_, builder.module(codecTemplate(eightBits ? "matmul_i8" : "matmul", weight), std::move(constants)));
  builder.dispatch(std::move(d));
  return {};
}

Status lowerPairGlu(const artifact::MoeGluOpT& glu, const ExpertGroup& group, GpuBuilder& builder) {
  constexpr uint32_t kLocal = 128;
  const uint64_t elements = builder.elements(glu.gate);
  const GpuPlace out = builder.place(group.gated);
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("glu", {{kSpecLocal, kLocal},
                                                            {kSpecRows, uint32_t(elements)},
                                                            {kSpecExperts, group.chosen},
                                                            {kSpecOutOrder, out.lanes ? 1u : 0u},
                                                            {kSpecActivation, static_cast<uint32_t>(glu.activation)},
                                                            {kSpecAlpha, bitsOf(glu.alpha)},
                                                            {kSpecLimit, bitsOf(glu.limit)}}));
  d.groups = ceilDiv(elements, kLocal);
  d.each = group.chosen;
  d.push.resize(kPushWords);
  d.push[kPushInput] = builder.place(glu.gate).start;
  d.push[kPushInputStride] = pairStride(glu.gate, builder);
  d.push[kPushAux] = builder.place(glu.up).start;
  d.push[kPushAuxStride] = pairStride(glu.up, builder);
  d.push[kPushOut] = out.start;
  d.push[kPushOutStride] = pairStride(group.gated, builder);
  builder.dispatch(std::move(d));
  return {};
}

void addSlot(std::vector<uint32_t>& list, uint32_t slot) {
  if (slot != kAbsent && !contains(list, slot))
    list.push_back(slot);
}

} // namespace

std::string refusePairs(const ExpertGroup& group, const GpuBuilder& builder) {
  if (!group.route || !group.glu || !group.combine || group.products.empty() || group.x == kAbsent)
    return "its experts are not products around a gated unit";
  for (const artifact::MoeMatmulOpT* matmul : group.products)
    for (const auto& part : matmul->parts) {
      const artifact::WeightT& weight = builder.weight(part->weight);
      if (std::string reason = refuseMatrix("matmul", part->weight, builder); !reason.empty())
        return reason;
      if (std::string reason = refuseVector(part->bias, builder); !reason.empty())
        return reason;
      if (part->bias != kAbsent && weight.rows % 4 != 0)
        return "its experts' biases do not lie side by side";
      const artifact::ExpertPartT& first = *matmul->parts[0];
      if (part->out != first.out || part->sum != first.sum ||
          sourceOf(part->input, group) != sourceOf(first.input, group) ||
          (sourceOf(part->input, group) == group.x && builder.elements(group.x) != weight.cols))
        return "its experts read different rows";
    }
  return {};
}

std::optional<GpuCall> pairCall(const artifact::OpUnion& op, const ExpertGroup& group) {
  GpuCall out;
  out.writesLanes = true;
  if (const artifact::MoeMatmulOpT* matmul = op.AsMoeMatmulOp()) {
    const uint32_t source = sourceOf(matmul->parts[0]->input, group);
    out.reads = {source, group.plan->plan};
    addSlot(out.reads, matmul->parts[0]->sum);
    out.lanes = {source};
    out.takesUnfinished = false; // of a tile's pairs each has a token of its own
    out.writes = {matmul->parts[0]->out};
    for (const auto& part : matmul->parts)
      out.products.push_back({source, part->weight, part->out});
    out.lower = [matmul, &group](GpuBuilder& builder) -> Status {
      for (const ExpertClass& experts : classesOf(*matmul, builder))
        CORTIQ_RETURN_IF_ERROR(lowerClass(*matmul, experts, group, builder));
      return {};
    };
    return out;
  }
  if (const artifact::MoeGluOpT* glu = op.AsMoeGluOp(); glu && glu == group.glu) {
    out.reads = {glu->gate, glu->up};
    out.writes = {group.gated};
    out.lower = [glu, &group](GpuBuilder& builder) { return lowerPairGlu(*glu, group, builder); };
    return out;
  }
  return std::nullopt;
}

} // namespace cortiq::compiler
