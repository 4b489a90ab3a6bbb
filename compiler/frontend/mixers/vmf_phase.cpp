// Linear attention on phases (CMF specification 3.9), with or without the delta correction.

#include "compiler/frontend/mixers/Mixers.h"

using namespace mlir;

namespace cortiq::compiler {

Value buildVmfPhase(GraphBuilder& graph, int64_t index, const LayerDescription& layer, Value x) {
  const LinearAttention& sizes = graph.model().linear;
  auto name = [&](StringRef suffix) { return layerName(index, "vmf_attn." + suffix.str()); };
  if (Value taps = graph.weight(name("conv1d.weight")))
    x = graph.create<cmf::CausalConvOp>(x.getType(), x, taps, graph.nextState(), UnitAttr());
  Value thetaQ = graph.linear(x, name("thq"));
  Value thetaK = graph.linear(x, name("thk"));
  Value v = graph.linear(x, name("v_proj"));
  Value gate = graph.model().find(name("k_gate.weight")) ? graph.linear(x, name("k_gate")) : Value();
  Value y = graph.create<cmf::VmfPhaseOp>(
      graph.activations(sizes.valueHeads * sizes.valueDim), thetaQ, thetaK, v, graph.weight(name("A_log")), gate,
      graph.nextState(), graph.number(sizes.valueHeads), graph.number(sizes.phases), graph.number(sizes.valueDim),
      layer.mixer == Mixer::kVmfPhaseDelta ? graph.ops().getUnitAttr() : UnitAttr());
  return graph.linear(y, name("out_proj"));
}

} // namespace cortiq::compiler
