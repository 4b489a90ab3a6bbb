#include "compiler/emit/rows/rows.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

/// Weights by number, "absent" for unit.
std::vector<uint32_t> columnScales(std::optional<ArrayAttr> scales, const ProgramNumbers& numbers) {
  std::vector<uint32_t> list;
  if (scales)
    for (Attribute entry : *scales) {
      auto symbol = dyn_cast<FlatSymbolRefAttr>(entry);
      list.push_back(symbol ? numbers.weight(symbol.getValue()) : ProgramNumbers::kNone);
    }
  return list;
}

} // namespace

artifact::MoeRouteOpT rowOf(kernel::MoeRouteOp op, const ProgramNumbers& numbers) {
  artifact::MoeRouteOpT r;
  r.logits = numbers.slot(op.getLogits());
  r.ids = numbers.slot(op.getIds());
  r.weights = numbers.slot(op.getWeights());
  r.scoring = static_cast<artifact::Scoring>(op.getScoring());
  r.bias = numbers.weight(op.getBias());
  r.scales = numbers.weight(op.getScales());
  r.normalize = op.getNormalize();
  r.norm_epsilon = op.getNormEpsilon().convertToDouble();
  r.norm_minimum = op.getNormMinimum().convertToDouble();
  r.scale = op.getScale().convertToDouble();
  r.groups = op.getGroups();
  r.groups_used = op.getGroupsUsed();
  return r;
}

artifact::MoePlanOpT rowOf(kernel::MoePlanOp op, const ProgramNumbers& numbers) {
  artifact::MoePlanOpT r;
  r.ids = numbers.slot(op.getIds());
  r.plan = numbers.slot(op.getPlan());
  r.experts = op.getExperts();
  return r;
}

artifact::MoeGatherOpT rowOf(kernel::MoeGatherOp op, const ProgramNumbers& numbers) {
  artifact::MoeGatherOpT r;
  r.plan = numbers.slot(op.getPlan());
  r.experts = op.getExperts();
  r.x = numbers.slot(op.getX());
  r.act = numbers.slot(op.getQx());
  setResults(op, numbers, r);
  r.column_scales = columnScales(op.getColumnScales(), numbers);
  return r;
}

artifact::MoeMatmulOpT rowOf(kernel::MoeMatmulOp op, const ProgramNumbers& numbers) {
  artifact::MoeMatmulOpT r;
  r.plan = numbers.slot(op.getPlan());
  for (auto expert : op.getBody().front().getOps<kernel::ExpertOp>()) {
    auto part = std::make_unique<artifact::ExpertPartT>();
    part->weight = numbers.weight(expert.getWeight());
    part->kernels = numbers.kernels(*expert.getKernels());
    part->tail_kernels = numbers.kernels(*expert.getTails());
    part->bias = numbers.weight(expert.getBias());
    part->input = numbers.slot(expert.getInput());
    part->token = numbers.slot(expert.getToken());
    part->out = numbers.slot(expert.getOut());
    part->sum = numbers.slot(expert.getSum());
    r.parts.push_back(std::move(part));
  }
  return r;
}

artifact::MoeGluOpT rowOf(kernel::MoeGluOp op, const ProgramNumbers& numbers) {
  artifact::MoeGluOpT r;
  r.plan = numbers.slot(op.getPlan());
  setGatedUnit(op, numbers, r);
  r.widths.assign(op.getWidths().begin(), op.getWidths().end());
  r.column_scales = columnScales(op.getColumnScales(), numbers);
  return r;
}

artifact::MoeCombineOpT rowOf(kernel::MoeCombineOp op, const ProgramNumbers& numbers) {
  artifact::MoeCombineOpT r;
  r.plan = numbers.slot(op.getPlan());
  r.experts = op.getExperts();
  r.weights = numbers.slot(op.getWeights());
  r.pairs = numbers.slot(op.getPairs());
  r.shared = numbers.slot(op.getShared());
  r.shared_gate = numbers.slot(op.getSharedGate());
  r.residual = numbers.slot(op.getResidual());
  r.out = numbers.slot(op.getOut());
  return r;
}

} // namespace cortiq::compiler
