#include <algorithm>
#include <tuple>

#include "compiler/gpu/GpuBuilder.h"

// Operations that work on a value at a time: activations, sums, gates, caps.

namespace cortiq::compiler {
namespace {

using namespace formats;

constexpr uint32_t kLocal = 128, kLocalRow = 512; // where a workgroup has a whole row

std::string take(const artifact::OpUnion&, const GpuBuilder&) {
  return {};
}

/// A call with results in natural or lane order, or in whatever form is wanted of its only one.
struct Results {
  uint32_t out, actOut;
  uint64_t elements;
};
Status dispatchResults(GpuBuilder& builder, std::string_view name, ValueRows rows, const Results& results,
                       const std::vector<codegen::SpecValue>& constants) {
  rows.elements = results.elements;
  const auto make = [&](const GpuPlace& out, RowForm form) {
    rows.out = out;
    rows.form = form;
    auto all = constants;
    all.push_back({kSpecOutOrder, out.lanes ? 1u : 0u});
    return dispatchValues(builder, name, rows, std::move(all));
  };
  if (const uint32_t only = builder.onlyEightBits(results.out, results.actOut); only != kAbsent)
    return builder.makeRow(only, make);
  const GpuPlace out = builder.resultPlace(results.out, results.actOut, results.elements);
  CORTIQ_RETURN_IF_ERROR(make(out, RowForm::kFloats));
  return builder.finishResults(out, results.out, results.actOut, results.elements);
}

Status lowerGlu(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::GluOpT& glu = *op.AsGluOp();
  const GpuPlace up = glu.up != kAbsent ? builder.place(glu.up) : GpuPlace();
  return dispatchResults(builder, "glu", {.input = builder.place(glu.gate), .aux = glu.up != kAbsent ? &up : nullptr},
                         {glu.out, glu.act_out, builder.elements(glu.gate)},
                         {{kSpecAdd, glu.up != kAbsent},
                          {kSpecActivation, static_cast<uint32_t>(glu.activation)},
                          {kSpecAlpha, bitsOf(glu.alpha)},
                          {kSpecLimit, bitsOf(glu.limit)}});
}

Status lowerAdd(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::AddOpT& add = *op.AsAddOp();
  const GpuPlace b = builder.place(add.b);
  return dispatchValues(builder, "add", {builder.place(add.a), builder.place(add.out), builder.elements(add.out), &b},
                        {{kSpecScale, bitsOf(add.scale)}});
}

Status lowerGate(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::GateOpT& gate = *op.AsGateOp();
  const uint64_t elements = builder.elements(gate.x);
  const GpuPlace g = builder.place(gate.g);
  return dispatchResults(builder, "gate", {.input = builder.place(gate.x), .aux = &g},
                         {gate.out, gate.act_out, elements},
                         {{kSpecFunction, static_cast<uint32_t>(gate.function)},
                          {kSpecGroup, static_cast<uint32_t>(elements / builder.elements(gate.g))}});
}

Status lowerLogits(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::LogitsOpT& logits = *op.AsLogitsOp();
  const GpuPlace place = builder.place(logits.input);
  return dispatchValues(builder, "logits", {place, place, builder.elements(logits.input)},
                        {{kSpecScale, bitsOf(logits.multiplier)}, {kSpecSoftcap, bitsOf(logits.softcap)}});
}

} // namespace

Status dispatchValues(GpuBuilder& builder, std::string_view name, const ValueRows& rows,
                      std::vector<codegen::SpecValue> constants) {
  constants.push_back({kSpecLocal, rows.form == RowForm::kHalf ? kLocalRow : kLocal});
  constants.push_back({kSpecRows, static_cast<uint32_t>(rows.elements)});
  if (rows.form != RowForm::kFloats)
    constants.push_back({kSpecQuantOut, static_cast<uint32_t>(rows.form)});
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module(name, std::move(constants)));
  d.groups = ceilDiv(rows.out.lanes ? laneRow(rows.elements) : rows.elements, kLocal);
  if (rows.form == RowForm::kEightBits)
    d.groups = ceilDiv(ceilDiv(rows.elements, 32), kLocal / 8);
  if (rows.form == RowForm::kHalf)
    d.groups = 1;
  d.push.resize(kPushWords);
  putRow(d.push, kRowInput, rows.input);
  putRow(d.push, kRowOut, rows.out);
  if (rows.aux)
    putRow(d.push, kRowAux, *rows.aux);
  d.push[kPushVector] = rows.vector;
  builder.dispatch(std::move(d));
  return {};
}

Status lowerArgmax(GpuBuilder& builder, uint32_t logits) {
  // One workgroup would read a large vocabulary alone.
  constexpr uint32_t kFew = 8192, kManyParts = 128;
  const uint32_t rows = static_cast<uint32_t>(builder.elements(logits)), parts = rows > kFew ? kManyParts : 1;
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(
      d.module_,
      builder.module("argmax", {{kSpecLocal, parts == 1 ? 512u : 256u}, {kSpecRows, rows}, {kSpecShares, parts}}));
  d.groups = parts;
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, logits);
  if (parts > 1) {
    const GpuPlace best = builder.scratch(2 * parts);
    putRow(d.push, kRowOut, best);
    artifact::GpuDispatchT join;
    CORTIQ_ASSIGN_OR_RETURN(
        join.module_,
        builder.module("argmax", {{kSpecLocal, kManyParts}, {kSpecRows, rows}, {kSpecShares, parts}, {kSpecSum, 1}}));
    join.groups = 1;
    join.push.resize(kPushWords);
    putRow(join.push, kRowInput, best);
    builder.dispatchBehind(std::move(join));
  }
  builder.dispatch(std::move(d));
  return {};
}

StatusOr<uint32_t> lowerTopLogits(GpuBuilder& builder, uint32_t logits, uint32_t count) {
  constexpr uint32_t kLocal = 256, kMostShares = 128, kLeastValues = 256;
  const uint64_t elements = builder.elements(logits);
  const auto shares = static_cast<uint32_t>(std::min<uint64_t>(kMostShares, ceilDiv(elements, kLeastValues)));
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("top_logits", {{kSpecLocal, kLocal},
                                                                   {kSpecRows, uint32_t(elements)},
                                                                   {kSpecGroups, shares},
                                                                   {kSpecTop, count}}));
  d.groups = shares;
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, logits);
  builder.dispatch(std::move(d));
  return shares;
}

Status lowerFinish(GpuBuilder& builder) {
  constexpr uint32_t kLocal = 64;
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(d.module_, builder.module("finish", {{kSpecLocal, kLocal}}));
  d.groups = 1;
  d.push.resize(kPushWords);
  builder.dispatch(std::move(d));
  return {};
}

const GpuOpRow kGpuGlu{artifact::Op::GluOp, take, lowerGlu, noLanes, true, EightBits::kBehind};
const GpuOpRow kGpuAdd{artifact::Op::AddOp, take, lowerAdd, noLanes, false};
const GpuOpRow kGpuGate{artifact::Op::GateOp, take, lowerGate, noLanes, true, EightBits::kBehind};
const GpuOpRow kGpuLogits{artifact::Op::LogitsOp, take, lowerLogits, noLanes, false};

} // namespace cortiq::compiler
