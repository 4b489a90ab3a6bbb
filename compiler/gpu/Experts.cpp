#include "compiler/gpu/Experts.h"

#include <algorithm>
#include <iterator>

#include "compiler/gpu/Bank.h"
#include "compiler/gpu/PairExperts.h"
#include "compiler/gpu/Product.h"
#include "formats/layout/layout.h"

namespace cortiq::compiler {

using namespace formats;

namespace {

constexpr uint64_t kMostWorkgroups = 65535; ///< in z, on any device
constexpr uint64_t kMostExperts = 1024;     ///< whose scores fit a workgroup's memory beside all else

uint32_t planOf(const artifact::OpUnion& op) {
  if (const auto* plan = op.AsMoePlanOp())
    return plan->plan;
  if (const auto* gather = op.AsMoeGatherOp())
    return gather->plan;
  if (const auto* matmul = op.AsMoeMatmulOp())
    return matmul->plan;
  if (const auto* glu = op.AsMoeGluOp())
    return glu->plan;
  if (const auto* combine = op.AsMoeCombineOp())
    return combine->plan;
  return kAbsent;
}

std::vector<uint32_t> weightsOf(const artifact::MoeMatmulOpT& matmul) {
  std::vector<uint32_t> list;
  for (const auto& part : matmul.parts)
    list.push_back(part->weight);
  return list;
}

/// Why the matrices of one role cannot be a stack; empty when they can.
std::string refuseRole(const artifact::MoeMatmulOpT& matmul, const GpuBuilder& builder) {
  const artifact::WeightT& first = builder.weight(matmul.parts[0]->weight);
  for (const auto& part : matmul.parts) {
    const artifact::WeightT& weight = builder.weight(part->weight);
    if (weight.codec != first.codec || weight.rows != first.rows || weight.cols != first.cols)
      return "its experts differ in shape or codec";
    if (std::string reason = refuseMatrix("matmul", part->weight, builder); !reason.empty())
      return reason;
    if (part->sum != kAbsent || part->input != matmul.parts[0]->input || part->out != matmul.parts[0]->out)
      return "its experts are of low rank, or read different rows";
  }
  return refuseBiases(matmul, builder);
}

/// Constants and pushes of a product with one role's matrices.
Status addRole(const artifact::MoeMatmulOpT& role, const ExpertGroup& group, GpuBuilder& builder, Constants& constants,
               artifact::GpuDispatchT& d) {
  CORTIQ_ASSIGN_OR_RETURN(const GpuBuilder::Stack stack, builder.stack(weightsOf(role)));
  d.weight = stack.first;
  constants.push_back({kSpecExperts, group.chosen});
  constants.push_back({kSpecExpertUnits, stack.units});
  const bool bias = role.parts[0]->bias != kAbsent;
  constants.push_back({kSpecBias, bias});
  if (bias)
    d.push[kPushVector] = builder.vectors(biasesOf(role));
  return {};
}

void addChoice(const artifact::MoeRouteOpT& route, GpuBuilder& builder, Constants& constants) {
  constants.push_back({kSpecRouted, static_cast<uint32_t>(builder.elements(route.logits))});
  constants.push_back({kSpecScoring, static_cast<uint32_t>(route.scoring)});
  constants.push_back({kSpecRouteBias, route.bias != kAbsent});
  constants.push_back({kSpecWeighted, route.scales != kAbsent});
  constants.push_back({kSpecNormalize, route.normalize});
  constants.push_back({kSpecNormEpsilon, bitsOf(static_cast<float>(route.norm_epsilon))});
  constants.push_back({kSpecNormMinimum, bitsOf(static_cast<float>(route.norm_minimum))});
  constants.push_back({kSpecRouteScale, bitsOf(static_cast<float>(route.scale))});
  constants.push_back({kSpecGroups, route.groups});
  constants.push_back({kSpecGroupsUsed, route.groups_used});
}

/// Whether tiles of integer products serve both roles of many tokens.
bool tiled(const ExpertGroup& group, const GpuBuilder& builder) {
  return !group.pairs && builder.eightBits(group.x) && builder.eightBits(group.gated) &&
         !codecTemplate("matmul_tile_i8", builder.weight(group.gate->parts[0]->weight)).empty() &&
         !codecTemplate("matmul_tile_i8", builder.weight(group.down->parts[0]->weight)).empty();
}
uint32_t pairsATile(const ExpertGroup& group, const GpuBuilder& builder) {
  return tiled(group, builder) ? kTileTokens : kManyTokens;
}

Status lowerPlan(const ExpertGroup& group, GpuBuilder& builder) {
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("moe_plan", {{kSpecLocal, 256},
                                                                 {kSpecExperts, group.chosen},
                                                                 {kSpecRouted, group.experts},
                                                                 {kSpecTokens, pairsATile(group, builder)}}));
  d.groups = 1;
  d.chunk = builder.maxBatch(); // one workgroup for all
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, group.route->ids);
  d.push[kPushOut] = builder.place(group.plan->plan).start;
  builder.dispatch(std::move(d));
  return {};
}

/// Which shader makes a role's products, and how its rows are shared out.
struct RoleShader {
  std::string name;
  ProductShape shape;
  uint32_t ahead = 1; ///< groups of 32 weights that a lane asks for at a time
};
RoleShader roleShader(const ExpertGroup& group, const artifact::WeightT& weight, bool quantized,
                      const QuantProduct& product, const GpuBuilder& builder) {
  if (!product.ofOneToken && tiled(group, builder))
    return {codecTemplate("matmul_tile_i8", weight), kTileShape};
  const std::string name = codecTemplate(product.eightBits ? "matmul_i8" : "matmul", weight);
  if (!quantized)
    return {name, productShape(weight.rows, weight.cols, product.eightBits)};
  const QuantShape made = quantShape(weight, product);
  return {name, made.shape, made.ahead};
}

/// A token's row of `slot` has one a pair of token and expert.
GpuPlace pairRow(uint32_t slot, const ExpertGroup& group, const GpuBuilder& builder) {
  GpuPlace out = builder.place(slot);
  out.stride /= group.chosen;
  return out;
}

/// On 16-bit matrices: of gate and up together, and of down; tiles of the plan are as large as without.
constexpr HalfShape kHalfGateUp{.rows = 64, .tokens = 32, .subRows = 16, .subTokens = 32, .ahead = 2, .sets = 1},
    kHalfDown{.rows = 128, .tokens = 32, .subRows = 16, .subTokens = 32, .ahead = 2, .sets = 1};
Status addHalf(HalfShape shape, const ExpertGroup& group, const artifact::WeightT& weight, GpuBuilder& builder,
               const Constants& constants, artifact::GpuDispatchT& d) {
  shape.chunk = pairsATile(group, builder);
  return addHalf(weight, weight.rows, {&shape, 1}, builder, constants, d);
}

/// Of many tokens: workgroups take tiles of the plan.
void addTiles(const ExpertGroup& group, uint32_t inputs, const GpuBuilder& builder, Constants& constants,
              artifact::GpuDispatchT& d) {
  constants.push_back({kSpecPlan, inputs});
  constants.push_back({kSpecTokens, pairsATile(group, builder)});
  d.chunk = pairsATile(group, builder);
  d.each = group.chosen;
  d.more = group.experts;
  d.push[kPushRoutes] = builder.place(group.plan->plan).start;
}

Status dispatchGateUp(const ExpertGroup& group, GpuBuilder& builder, bool single, const GpuPlace& out, bool quantized) {
  const artifact::WeightT& weight = builder.weight(group.gate->parts[0]->weight);
  const bool eightBits = builder.eightBits(group.x);
  const RoleShader shader =
      roleShader(group, weight, quantized,
                 {.ofOneToken = single, .eightBits = eightBits, .matrices = 2, .experts = true}, builder);
  CORTIQ_ASSIGN_OR_RETURN(const GpuPlace input, builder.inLanes(group.x, 0, weight.cols));
  Constants constants = shapeConstants(weight, shader.shape);
  artifact::GpuDispatchT d;
  d.push.resize(kPushWords);
  d.groups = shader.shape.groups(weight.rows);
  putRow(d.push, kRowInput, input);
  putRow(d.push, kRowOut, out);
  CORTIQ_RETURN_IF_ERROR(addRole(*group.gate, group, builder, constants, d));
  CORTIQ_ASSIGN_OR_RETURN(const GpuBuilder::Stack up, builder.stack(weightsOf(*group.up)));
  d.weight2 = up.first;
  if (group.up->parts[0]->bias != kAbsent)
    d.push[kPushVector2] = builder.vectors(biasesOf(*group.up));
  constants.push_back({kSpecPair, 1});
  constants.push_back({kSpecOutOrder, out.lanes ? 1u : 0u});
  constants.push_back({kSpecActivation, static_cast<uint32_t>(group.glu->activation)});
  constants.push_back({kSpecAlpha, bitsOf(group.glu->alpha)});
  constants.push_back({kSpecLimit, bitsOf(group.glu->limit)});
  if (quantized)
    constants.push_back({kSpecQuantOut, 1});
  if (single) {
    constants.push_back({kSpecAhead, shader.ahead});
    addNormIn(builder.unfinished(group.x), constants, d);
    d.each = group.chosen;
    d.push[kPushRoutes] = builder.place(group.route->ids).start;
    if (group.routeInProducts) {
      constants.push_back({kSpecRoute, 1});
      addChoice(*group.route, builder, constants);
      d.push[kPushLogits] = builder.place(group.route->logits).start;
      d.push[kPushRouteBias] = builder.vector(group.route->bias);
      d.push[kPushRouteScales] = builder.vector(group.route->scales);
    }
  } else {
    addTiles(group, 1, builder, constants, d);
    if (tiled(group, builder) && !builder.onlyHalf())
      CORTIQ_RETURN_IF_ERROR(
          addWide(weight, weight.rows, {.rows = 64, .tokens = kTileTokens, .matrices = 2}, builder, constants, d));
    if (eightBits)
      CORTIQ_RETURN_IF_ERROR(addHalf(kHalfGateUp, group, weight, builder, constants, d));
  }
  if (builder.onlyHalf() && !d.half.empty())
    d.module_ = d.half.front()->module_;
  else {
    CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module(shader.name, std::move(constants)));
  }
  builder.dispatch(std::move(d));
  return {};
}

Status lowerGateUp(const ExpertGroup& group, GpuBuilder& builder, bool single) {
  return builder.makeResult(group.gated, group.inner, group.chosen, [&](const GpuPlace& out, bool quantized) {
    return dispatchGateUp(group, builder, single, out, quantized);
  });
}

Status lowerDownPairs(const ExpertGroup& group, GpuBuilder& builder) {
  const artifact::WeightT& weight = builder.weight(group.down->parts[0]->weight);
  const RoleShader shader =
      roleShader(group, weight, false, {.ofOneToken = false, .eightBits = builder.eightBits(group.gated)}, builder);
  Constants constants = shapeConstants(weight, shader.shape);
  artifact::GpuDispatchT d;
  d.push.resize(kPushWords);
  d.groups = shader.shape.groups(weight.rows);
  putRow(d.push, kRowInput, pairRow(group.gated, group, builder));
  putRow(d.push, kRowOut, {builder.place(group.down->parts[0]->out).start, static_cast<uint32_t>(weight.rows)});
  CORTIQ_RETURN_IF_ERROR(addRole(*group.down, group, builder, constants, d));
  addTiles(group, 2, builder, constants, d);
  if (tiled(group, builder))
    CORTIQ_RETURN_IF_ERROR(addWide(weight, weight.rows, {.rows = 128, .tokens = kTileTokens}, builder, constants, d));
  if (builder.eightBits(group.gated))
    CORTIQ_RETURN_IF_ERROR(addHalf(kHalfDown, group, weight, builder, constants, d));
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module(shader.name, std::move(constants)));
  builder.dispatch(std::move(d));
  return {};
}

uint32_t sharedKind(const artifact::MoeCombineOpT& combine) {
  return combine.shared == kAbsent ? 0 : combine.shared_gate == kAbsent ? 1 : 2;
}

Status lowerCombine(const ExpertGroup& group, GpuBuilder& builder) {
  artifact::GpuDispatchT d;
  CORTIQ_RETURN_IF_ERROR(combineDispatch(group, {{kSpecExperts, group.chosen}}, builder, d));
  builder.dispatch(std::move(d));
  return {};
}

/// Of a single token: down products of its experts and their sum, with all that the combination adds.
Status lowerDownSum(const ExpertGroup& group, GpuBuilder& builder, const artifact::NormOpT* norm) {
  const artifact::MoeCombineOpT& combine = *group.combine;
  const artifact::WeightT& weight = builder.weight(group.down->parts[0]->weight);
  const bool eightBits = builder.eightBits(group.gated), quantized = norm && quantizes(*norm, builder);
  const RoleShader shader =
      roleShader(group, weight, quantized,
                 {.ofOneToken = true, .eightBits = eightBits, .choices = group.chosen, .experts = true}, builder);
  Constants constants = shapeConstants(weight, shader.shape);
  artifact::GpuDispatchT d;
  d.push.resize(kPushWords);
  d.groups = shader.shape.groups(weight.rows);
  putRow(d.push, kRowInput, pairRow(group.gated, group, builder));
  builder.putSlot(d.push, kRowOut, combine.out);
  d.push[kPushRoutes] = builder.place(group.route->ids).start;
  CORTIQ_RETURN_IF_ERROR(addRole(*group.down, group, builder, constants, d));
  constants.push_back({kSpecSum, 1});
  constants.push_back({kSpecAhead, shader.ahead});
  constants.push_back({kSpecResidual, combine.residual != kAbsent});
  if (combine.residual != kAbsent)
    d.push[kPushAux] = builder.place(combine.residual).start;
  constants.push_back({kSpecShared, sharedKind(combine)});
  if (combine.shared != kAbsent)
    d.push[kPushShared] = builder.place(combine.shared).start;
  if (combine.shared_gate != kAbsent)
    d.push[kPushSharedGate] = builder.place(combine.shared_gate).start;
  if (norm)
    CORTIQ_RETURN_IF_ERROR(addNormOut(*norm, d.groups, builder, constants, d));
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module(shader.name, std::move(constants)));
  builder.dispatch(std::move(d));
  return {};
}

void addSlot(std::vector<uint32_t>& list, uint32_t slot) {
  if (slot != kAbsent)
    list.push_back(slot);
}

bool fits(const ExpertGroup& group, const GpuBuilder& builder) {
  return group.experts <= kMostExperts && uint64_t{group.chosen} * builder.maxBatch() <= kMostWorkgroups;
}

} // namespace

std::vector<uint32_t> biasesOf(const artifact::MoeMatmulOpT& matmul) {
  std::vector<uint32_t> list;
  for (const auto& part : matmul.parts)
    list.push_back(part->bias);
  return list;
}

std::string refuseBiases(const artifact::MoeMatmulOpT& matmul, const GpuBuilder& builder) {
  for (const auto& part : matmul.parts) {
    if ((part->bias == kAbsent) != (matmul.parts[0]->bias == kAbsent) ||
        (part->bias != kAbsent && builder.weight(part->weight).rows % 4 != 0))
      return "its experts' biases do not lie side by side";
    if (std::string reason = refuseVector(part->bias, builder); !reason.empty())
      return reason;
  }
  return {};
}

Status lowerRoute(const ExpertGroup& group, GpuBuilder& builder) {
  const artifact::MoeRouteOpT& route = *group.route;
  Constants constants{{kSpecLocal, group.experts > 64 ? 256u : 64u}, {kSpecExperts, group.chosen}};
  addChoice(route, builder, constants);
  artifact::GpuDispatchT d;
  if (group.mask) {
    constants.push_back({kSpecMasked, 1});
    d.mask_row = builder.maskRow(*group.mask, group.experts);
  }
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("moe_route", std::move(constants)));
  d.groups = 1;
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, route.logits);
  builder.putSlot(d.push, kRowOut, route.ids);
  d.push[kPushVector] = builder.vector(route.bias);
  d.push[kPushVector2] = builder.vector(route.scales);
  builder.dispatch(std::move(d));
  return {};
}

Status combineDispatch(const ExpertGroup& group, Constants constants, GpuBuilder& builder, artifact::GpuDispatchT& d) {
  constexpr uint32_t kLocal = 128;
  const artifact::MoeCombineOpT& combine = *group.combine;
  const uint64_t elements = builder.elements(combine.out);
  constants.push_back({kSpecLocal, kLocal});
  constants.push_back({kSpecRows, static_cast<uint32_t>(elements)});
  constants.push_back({kSpecResidual, combine.residual != kAbsent});
  constants.push_back({kSpecShared, sharedKind(combine)});
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("moe_combine", std::move(constants)));
  d.groups = ceilDiv(elements, kLocal);
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowAux, combine.residual);
  builder.putSlot(d.push, kRowOut, combine.out);
  builder.putSlot(d.push, kRowThird, combine.shared);
  builder.putSlot(d.push, kRowGate, combine.shared_gate);
  putRow(d.push, kRowInput,
         {builder.place(combine.pairs).start, static_cast<uint32_t>(builder.elements(combine.pairs))});
  d.push[kPushRoutes] = builder.place(group.route->ids).start;
  return {};
}

ExpertGroups::ExpertGroups(const artifact::ProgramT& program, const GpuBuilder& builder) {
  for (uint32_t s = 0; s < program.stages.size(); ++s)
    for (const auto& call : program.stages[s]->calls)
      if (const auto* plan = call->op.AsMoePlanOp())
        if (byPlan_.try_emplace(plan->plan, static_cast<uint32_t>(groups_.size())).second)
          groups_.emplace_back().plan = plan;
  for (uint32_t s = 0; s < program.stages.size(); ++s)
    for (const auto& call : program.stages[s]->calls)
      add(*call, s);
  for (ExpertGroup& group : groups_) {
    group.experts = group.plan->experts;
    if (group.glu && group.up && group.up->parts[0]->out == group.glu->gate)
      std::swap(group.gate, group.up);
    if (group.glu)
      group.gated = group.glu->out != kAbsent ? group.glu->out : group.glu->act_out;
    if (group.combine)
      group.chosen = static_cast<uint32_t>(program.buffers[group.combine->weights]->elements);
    if (group.gate)
      group.inner = builder.weight(group.gate->parts[0]->weight).rows;
    group.reason = refusal(group, builder);
    group.bank = builder.experts() != GpuExperts::kAll;
    if (!group.bank && !group.reason.empty() && refusePairs(group, builder).empty() && fits(group, builder)) {
      group.reason.clear();
      group.pairs = true;
    }
  }
}

uint32_t ExpertGroups::of(const artifact::OpUnion& op) const {
  if (const auto* route = op.AsMoeRouteOp()) {
    for (uint32_t i = 0; i < groups_.size(); ++i)
      if (groups_[i].plan->ids == route->ids)
        return i;
    return kAbsent;
  }
  const uint32_t plan = planOf(op);
  const auto found = plan == kAbsent ? byPlan_.end() : byPlan_.find(plan);
  return found == byPlan_.end() ? kAbsent : found->second;
}

void ExpertGroups::add(const artifact::CallT& call, uint32_t stage) {
  const artifact::OpUnion& op = call.op;
  const uint32_t number = of(op);
  if (number == kAbsent)
    return;
  ExpertGroup& group = groups_[number];
  group.first = std::min(group.first, stage);
  group.last = stage;
  const auto set = [&](auto*& field, const auto* value) {
    if (field)
      group.reason = "its experts are not one product each of gate, up and down";
    field = value;
  };
  if (const auto* route = op.AsMoeRouteOp()) {
    set(group.route, route);
    group.mask = call.mask.get();
  } else if (const auto* glu = op.AsMoeGluOp()) {
    addSlot(group.gates, glu->out);
    addSlot(group.gates, glu->act_out);
    if (group.glu)
      group.reason = "its experts are not one product each of gate, up and down";
    else
      group.glu = glu;
  } else if (const auto* combine = op.AsMoeCombineOp())
    set(group.combine, combine);
  else if (const auto* matmul = op.AsMoeMatmulOp()) {
    group.products.push_back(matmul);
    if (group.glu)
      set(group.down, matmul);
    else if (!group.gate)
      group.gate = matmul;
    else
      set(group.up, matmul);
  } else if (const auto* gather = op.AsMoeGatherOp()) {
    // Column scales are the products' own affair on the GPU: all that is gathered is the token's row.
    addSlot(group.gathered, gather->out);
    addSlot(group.gathered, gather->act_out);
    const uint32_t from = gather->act != kAbsent && gather->act_out != kAbsent ? gather->act : gather->x;
    if (group.x == kAbsent || from == gather->act)
      group.x = from;
  }
}

std::string ExpertGroups::refuseExperts(const ExpertGroup& group, const GpuBuilder& builder) const {
  if (builder.experts() != GpuExperts::kAll) {
    const auto first = std::ranges::find_if(groups_, [](const ExpertGroup& g) { return g.bank && g.reason.empty(); });
    return refuseBank(group, first == groups_.end() ? nullptr : &*first, builder);
  }
  for (const artifact::MoeMatmulOpT* role : {group.gate, group.up, group.down})
    if (std::string reason = refuseRole(*role, builder); !reason.empty())
      return reason;
  const artifact::WeightT &gate = builder.weight(group.gate->parts[0]->weight),
                          &up = builder.weight(group.up->parts[0]->weight);
  if (gate.codec != up.codec || gate.rows != up.rows || gate.cols != up.cols ||
      (group.gate->parts[0]->bias == kAbsent) != (group.up->parts[0]->bias == kAbsent))
    return "its experts' gate and up differ in shape or codec";
  return {};
}

std::string ExpertGroups::refusal(const ExpertGroup& group, const GpuBuilder& builder) const {
  if (!group.reason.empty())
    return group.reason;
  if (!group.route || !group.gate || !group.up || !group.down || !group.glu || !group.combine || group.x == kAbsent)
    return "its experts are not one product each of gate, up and down";
  if (std::string reason = refuseExperts(group, builder); !reason.empty())
    return reason;
  if (group.combine->weights != group.route->weights || group.combine->pairs != group.down->parts[0]->out ||
      (group.glu->out == kAbsent) == (group.glu->act_out == kAbsent))
    return "its experts are not one product each of gate, up and down";
  if (!fits(group, builder))
    return "it has more experts than a workgroup can choose from";
  if (builder.elements(group.x) != builder.weight(group.gate->parts[0]->weight).cols)
    return "its experts read a part of a row";
  if (std::string reason = refuseVector(group.route->bias, builder); !reason.empty())
    return reason;
  return refuseVector(group.route->scales, builder);
}

std::optional<GpuCall> ExpertGroups::call(const artifact::OpUnion& op, uint32_t number, bool single) const {
  const ExpertGroup& group = groups_[number];
  if (group.bank)
    return bankCall(group, op);
  const uint32_t ids = group.route->ids, plan = group.plan->plan;
  const auto addedBy = [](const artifact::MoeCombineOpT& combine, std::vector<uint32_t>& reads) {
    addSlot(reads, combine.residual);
    addSlot(reads, combine.shared);
    addSlot(reads, combine.shared_gate);
  };
  GpuCall out;
  if (op.AsMoeRouteOp()) {
    out.reads = {group.route->logits};
    out.writes = {ids};
    out.choosesFor = group.pairs ? kAbsent : number;
    out.lower = [&group](GpuBuilder& builder) { return lowerRoute(group, builder); };
    return out;
  }
  if (op.AsMoePlanOp() && (!single || group.pairs)) {
    out.reads = {ids};
    out.writes = {plan};
    out.lower = [&group](GpuBuilder& builder) { return lowerPlan(group, builder); };
    return out;
  }
  if (group.pairs && !op.AsMoeCombineOp())
    return pairCall(op, group);
  if (op.AsMoeMatmulOp() == group.gate && group.gate) {
    out.reads = {group.x, single ? ids : plan};
    out.writes = {group.gated};
    out.lanes = {group.x};
    out.writesLanes = true;
    for (const artifact::MoeMatmulOpT* role : {group.gate, group.up})
      out.products.push_back({group.x, role->parts[0]->weight, group.gated});
    out.eightBits = EightBits::kWholeGroups;
    out.groupValues = group.inner;
    out.routed = number;
    out.lower = [&group, single](GpuBuilder& builder) { return lowerGateUp(group, builder, single); };
    return out;
  }
  if (op.AsMoeMatmulOp() == group.down && group.down) {
    out.reads = {group.gated};
    out.lanes = {group.gated};
    out.products.push_back({group.gated, group.down->parts[0]->weight, group.combine->out});
    if (single) {
      out.reads.push_back(ids);
      addedBy(*group.combine, out.reads);
      out.writes = {group.combine->out};
      out.normed = group.combine->out;
      out.lower = [&group](GpuBuilder& builder) { return lowerDownSum(group, builder, nullptr); };
      out.lowerWithNorm = [&group](GpuBuilder& builder, const artifact::NormOpT& norm) {
        return lowerDownSum(group, builder, &norm);
      };
    } else {
      out.reads.push_back(plan);
      out.writes = {group.combine->pairs};
      out.lower = [&group](GpuBuilder& builder) { return lowerDownPairs(group, builder); };
    }
    return out;
  }
  if (op.AsMoeCombineOp() && (!single || group.pairs)) {
    out.reads = {group.combine->pairs, ids};
    addedBy(*group.combine, out.reads);
    out.writes = {group.combine->out};
    out.lower = [&group](GpuBuilder& builder) { return lowerCombine(group, builder); };
    return out;
  }
  return std::nullopt;
}

std::vector<std::pair<uint32_t, uint64_t>> ExpertGroups::strides(uint32_t maxBatch, const GpuBuilder& builder) const {
  std::vector<std::pair<uint32_t, uint64_t>> out;
  for (const ExpertGroup& group : groups_) {
    if (!group.reason.empty())
      continue;
    if (group.bank) {
      std::ranges::copy(bankStrides(group, builder), std::back_inserter(out));
      continue;
    }
    out.emplace_back(group.route->ids, 2 * uint64_t{group.chosen});
    const uint64_t pairs = uint64_t{maxBatch} * group.chosen;
    const uint64_t words = 4 + 4 * (ceilDiv(pairs, kManyTokens) + group.experts) + pairs;
    // Not less than the program's own plan.
    const uint64_t own = 2 * uint64_t{group.experts} + 2 + 2 * uint64_t{group.chosen};
    out.emplace_back(group.plan->plan, ceilDiv(std::max(own, ceilDiv(words, maxBatch)), 4) * 4);
  }
  return out;
}

bool ExpertGroups::decides(uint32_t slot) const {
  return std::ranges::any_of(groups_, [&](const ExpertGroup& group) {
    return group.reason.empty() && (group.route->logits == slot || group.combine->shared_gate == slot);
  });
}

} // namespace cortiq::compiler
