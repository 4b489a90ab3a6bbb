#include "compiler/gpu/Bank.h"

#include <algorithm>
#include <limits>

#include "compiler/gpu/Product.h"
#include "formats/codec/bank_codecs.h"
#include "formats/layout/layout.h"

namespace cortiq::compiler {

using namespace formats;

namespace {

constexpr uint32_t kLocal = 64;
constexpr uint64_t kMostRows = 65535; ///< workgroups in x, on any device
constexpr uint64_t kGroup = 32;       ///< columns that share a scale
constexpr uint32_t kWinnerWords = 3;  ///< that bank_remap leaves of each

/// As it stands in the file.
StatusOr<uint64_t> fileBytes(const artifact::WeightT& weight) {
  return packed_bytes(codec_info(static_cast<CodecId>(weight.codec)), LayoutId::kVerbatim, weight.rows, weight.cols);
}

std::string bytesRefusal(const artifact::WeightT& weight) {
  const StatusOr<uint64_t> bytes = fileBytes(weight);
  if (!bytes.ok())
    return bytes.status().message();
  return *bytes % 4 == 0 ? std::string()
                         : "a matrix of its experts has " + std::to_string(*bytes) +
                               " bytes, slots of the bank hold multiples of 4";
}

std::string refuseRole(const artifact::MoeMatmulOpT& role, const GpuBuilder& builder) {
  const auto& first = *role.parts[0];
  const artifact::WeightT& shape = builder.weight(first.weight);
  for (const auto& part : role.parts) {
    const artifact::WeightT& weight = builder.weight(part->weight);
    if (weight.codec != shape.codec || weight.rows != shape.rows || weight.cols != shape.cols)
      return "its experts differ in shape or codec, the slots of the bank are all alike";
    if (part->sum != kAbsent || part->input != first.input || part->out != first.out)
      return "its experts are of low rank, or read different rows";
    if (!weight.blend.empty())
      return "its experts are mixed at run time";
  }
  if (shape.rows > kMostRows || shape.cols % kGroup != 0)
    return "its experts have " + std::to_string(shape.rows) + " rows of " + std::to_string(shape.cols) +
           ", the bank takes up to " + std::to_string(kMostRows) + " of a multiple of " + std::to_string(kGroup);
  if (std::string reason = refuseBiases(role, builder); !reason.empty())
    return reason;
  return bytesRefusal(shape);
}

const artifact::WeightT& shapeOf(const artifact::MoeMatmulOpT& role, const GpuBuilder& builder) {
  return builder.weight(role.parts[0]->weight);
}

bool same(const artifact::WeightT& a, const artifact::WeightT& b) {
  return a.codec == b.codec && a.rows == b.rows && a.cols == b.cols;
}

std::string_view codecName(const artifact::WeightT& weight) {
  return codec_info(static_cast<CodecId>(weight.codec)).name;
}

/// Of a matrix that the bank does not refuse.
uint32_t slotWords(const artifact::WeightT& weight) {
  return static_cast<uint32_t>(*fileBytes(weight) / 4);
}

/// Of both products.
Constants productConstants(const ExpertGroup& group, const GpuBuilder& builder) {
  const artifact::WeightT& weight = shapeOf(*group.gate, builder);
  return {{kSpecLocal, kLocal},
          {kSpecBankInner, static_cast<uint32_t>(weight.rows)},
          {kSpecBankHidden, static_cast<uint32_t>(weight.cols)},
          {kSpecBankWinners, group.chosen},
          {kSpecBankPreweighted, builder.experts() == GpuExperts::kBankBf16}};
}

artifact::GpuDispatchT dispatchOf(const ExpertGroup& group, artifact::BankPart part) {
  artifact::GpuDispatchT d;
  d.bank = part;
  d.bank_layer = group.bankLayer;
  d.groups = 1;
  d.push.resize(kPushWords);
  return d;
}

/// The modules for eight segments and for sixteen.
Status setModules(const std::string& name, const Constants& constants, GpuBuilder& builder, artifact::GpuDispatchT& d) {
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module(name, constants));
  CORTIQ_ASSIGN_OR_RETURN(d.sixteen_module, builder.module(name + "_s16", constants));
  return {};
}

Status lowerRemap(const ExpertGroup& group, GpuBuilder& builder) {
  const GpuPlace ids = builder.place(group.route->ids), winners = builder.place(group.plan->plan);
  artifact::GpuDispatchT d = dispatchOf(group, artifact::BankPart::Remap);
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("bank_remap", {{kSpecLocal, kLocal},
                                                                   {kSpecExperts, group.chosen},
                                                                   {kSpecBankWinners, group.chosen}}));
  putRow(d.push, kRowInput, ids);
  putRow(d.push, kRowOut, {winners.start, kWinnerWords * group.chosen});
  d.push[kPushVector] = static_cast<uint32_t>(group.remap);
  builder.dispatch(std::move(d));
  return {};
}

Status lowerOuter(const ExpertGroup& group, GpuBuilder& builder) {
  const artifact::WeightT& weight = shapeOf(*group.gate, builder);
  const GpuPlace x = builder.place(group.x), gated = builder.place(group.gated);
  artifact::GpuDispatchT d = dispatchOf(group, artifact::BankPart::GateUp);
  Constants constants = productConstants(group, builder);
  constants.push_back({kSpecBankSlotWords, slotWords(weight)});
  constants.push_back({kSpecBias, group.gate->parts[0]->bias != kAbsent});
  constants.push_back({kSpecActivation, static_cast<uint32_t>(group.glu->activation)});
  constants.push_back({kSpecAlpha, bitsOf(group.glu->alpha)});
  // What bends sums at a limit is the bank's own; the activation behind it finds nothing to bend.
  const bool bends = group.glu->activation == artifact::Activation::SwigluOai;
  constants.push_back({kSpecBankLimit, bitsOf(bends ? group.glu->limit : 0.0f)});
  constants.push_back({kSpecLimit, bitsOf(bends ? std::numeric_limits<float>::infinity() : group.glu->limit)});
  CORTIQ_RETURN_IF_ERROR(setModules("bank_gate_up_" + std::string(codecName(weight)), constants, builder, d));
  d.groups = weight.rows;
  d.groups_y = group.chosen;
  putRow(d.push, kRowInput, x);
  putRow(d.push, kRowOut, {gated.start, gated.stride / group.chosen});
  d.push[kPushRoutes] = builder.place(group.plan->plan).start;
  if (group.gate->parts[0]->bias != kAbsent) {
    d.push[kPushVector] = builder.vectors(biasesOf(*group.gate));
    d.push[kPushVector2] = builder.vectors(biasesOf(*group.up));
  }
  builder.dispatch(std::move(d));
  return {};
}

Status lowerDown(const ExpertGroup& group, GpuBuilder& builder) {
  const artifact::WeightT& weight = shapeOf(*group.down, builder);
  const GpuPlace gated = builder.place(group.gated), sums = builder.place(group.combine->pairs);
  artifact::GpuDispatchT d = dispatchOf(group, artifact::BankPart::Down);
  Constants constants = productConstants(group, builder);
  constants.push_back({kSpecBankDownSlotWords, slotWords(weight)});
  constants.push_back({kSpecBias, group.down->parts[0]->bias != kAbsent});
  CORTIQ_RETURN_IF_ERROR(setModules("bank_down_" + std::string(codecName(weight)), constants, builder, d));
  d.groups = weight.rows;
  putRow(d.push, kRowInput, {gated.start, gated.stride / group.chosen});
  putRow(d.push, kRowOut, sums);
  d.push[kPushRoutes] = builder.place(group.plan->plan).start;
  if (group.down->parts[0]->bias != kAbsent)
    d.push[kPushVector] = builder.vectors(biasesOf(*group.down));
  builder.dispatch(std::move(d));
  return {};
}

Status lowerSum(const ExpertGroup& group, GpuBuilder& builder) {
  artifact::GpuDispatchT d = dispatchOf(group, artifact::BankPart::Combine);
  CORTIQ_RETURN_IF_ERROR(combineDispatch(group, {{kSpecExperts, 2}, {kSpecSum, 1}}, builder, d));
  d.push[kPushInputStride] = builder.place(group.combine->pairs).stride / 2;
  builder.dispatch(std::move(d));
  return {};
}

} // namespace

std::string refuseBank(const ExpertGroup& group, const ExpertGroup* first, const GpuBuilder& builder) {
  for (const artifact::MoeMatmulOpT* role : {group.gate, group.up, group.down})
    if (std::string reason = refuseRole(*role, builder); !reason.empty())
      return reason;
  const artifact::WeightT &gate = shapeOf(*group.gate, builder), &up = shapeOf(*group.up, builder),
                          &down = shapeOf(*group.down, builder);
  if (!same(gate, up) || (group.gate->parts[0]->bias == kAbsent) != (group.up->parts[0]->bias == kAbsent))
    return "its experts' gate and up differ in shape or codec";
  if (!bank_reads(static_cast<CodecId>(gate.codec), static_cast<CodecId>(down.codec)))
    return "the bank does not read experts of " + std::string(codecName(gate)) + " with down matrices of " +
           std::string(codecName(down));
  if (first && (!same(gate, shapeOf(*first->gate, builder)) || !same(down, shapeOf(*first->down, builder))))
    return "its experts are of another shape or codec than the bank's, and a model has one bank";
  return {};
}

std::optional<GpuCall> bankCall(const ExpertGroup& group, const artifact::OpUnion& op) {
  const uint32_t ids = group.route->ids, winners = group.plan->plan, sums = group.combine->pairs;
  const auto made = [&](std::vector<uint32_t> reads, uint32_t write, Status (*lower)(const ExpertGroup&, GpuBuilder&)) {
    GpuCall out;
    out.reads = std::move(reads);
    out.writes = {write};
    out.lower = [&group, lower](GpuBuilder& builder) { return lower(group, builder); };
    return out;
  };
  if (op.AsMoeRouteOp())
    return made({group.route->logits}, ids, lowerRoute);
  if (op.AsMoePlanOp())
    return made({ids}, winners, lowerRemap);
  if (op.AsMoeMatmulOp() == group.gate && group.gate)
    return made({group.x, winners}, group.gated, lowerOuter);
  if (op.AsMoeMatmulOp() == group.down && group.down)
    return made({group.gated, winners}, sums, lowerDown);
  if (op.AsMoeCombineOp()) {
    std::vector<uint32_t> reads = {sums};
    for (const uint32_t slot : {group.combine->residual, group.combine->shared, group.combine->shared_gate})
      if (slot != kAbsent)
        reads.push_back(slot);
    return made(std::move(reads), group.combine->out, lowerSum);
  }
  return std::nullopt;
}

std::vector<std::pair<uint32_t, uint64_t>> bankStrides(const ExpertGroup& group, const GpuBuilder& builder) {
  // Of the sums, one row is the device's and one the host's.
  return {{group.route->ids, 2 * uint64_t{group.chosen}},
          {group.combine->pairs, std::max<uint64_t>(2, group.chosen) * builder.elements(group.combine->pairs)}};
}

Status addBank(std::vector<ExpertGroup>& groups, GpuBuilder& builder, artifact::GpuProgramT& out) {
  const auto weights = [&](const artifact::MoeMatmulOpT& role) -> StatusOr<std::vector<uint32_t>> {
    std::vector<uint32_t> list;
    for (const auto& part : role.parts) {
      CORTIQ_ASSIGN_OR_RETURN(const uint32_t index, builder.matrix(part->weight, LayoutId::kVerbatim));
      list.push_back(index);
    }
    return list;
  };
  for (ExpertGroup& group : groups) {
    if (!group.bank || !group.reason.empty())
      continue;
    if (!out.bank) {
      out.bank = std::make_unique<artifact::GpuBankT>();
      out.bank->preweighted = builder.experts() == GpuExperts::kBankBf16;
    }
    group.bankLayer = static_cast<uint32_t>(out.bank->layers.size());
    group.remap = builder.reserveVector(group.experts);
    auto row = std::make_unique<artifact::GpuBankLayerT>();
    CORTIQ_ASSIGN_OR_RETURN(row->gate, weights(*group.gate));
    CORTIQ_ASSIGN_OR_RETURN(row->up, weights(*group.up));
    CORTIQ_ASSIGN_OR_RETURN(row->down, weights(*group.down));
    row->x = group.x;
    row->ids = group.route->ids;
    row->weights = group.route->weights;
    row->sum = group.combine->out;
    row->cold = group.combine->pairs;
    row->remap = group.remap;
    row->first_stage = group.first;
    row->stages = group.last - group.first + 1;
    out.bank->layers.push_back(std::move(row));
  }
  return {};
}

} // namespace cortiq::compiler
