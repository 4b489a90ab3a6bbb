#include "compiler/emit/rows/rows.h"

namespace cortiq::compiler {

artifact::CausalConvOpT rowOf(kernel::CausalConvOp op, const ProgramNumbers& numbers) {
  artifact::CausalConvOpT r;
  r.input = numbers.slot(op.getInput());
  r.weight = numbers.weight(op.getWeight());
  r.state = numbers.state(op.getState());
  r.out = numbers.slot(op.getOut());
  r.taps = op.getTaps();
  r.silu = op.getSilu();
  return r;
}

artifact::ShortConvOpT rowOf(kernel::ShortConvOp op, const ProgramNumbers& numbers) {
  artifact::ShortConvOpT r;
  r.input = numbers.slot(op.getInput());
  r.weight = numbers.weight(op.getWeight());
  r.state = numbers.state(op.getState());
  r.out = numbers.slot(op.getOut());
  r.taps = op.getTaps();
  return r;
}

artifact::GatedDeltaOpT rowOf(kernel::GatedDeltaOp op, const ProgramNumbers& numbers) {
  artifact::GatedDeltaOpT r;
  r.qkv = numbers.slot(op.getQkv());
  r.z = numbers.slot(op.getZ());
  r.a = numbers.slot(op.getA());
  r.b = numbers.slot(op.getB());
  r.decay = numbers.weight(op.getDecay());
  r.dt_bias = numbers.weight(op.getDtBias());
  r.norm = numbers.weight(op.getNorm());
  r.state = numbers.state(op.getState());
  r.out = numbers.slot(op.getOut());
  r.key_heads = op.getKeyHeads();
  r.value_heads = op.getValueHeads();
  r.key_dim = op.getKeyDim();
  r.value_dim = op.getValueDim();
  r.eps = toFloat(op.getEps());
  r.tiled = op.getTiled();
  r.rates = op.getRates();
  r.sigmoid_gate = op.getSigmoidGate();
  return r;
}

artifact::KdaOpT rowOf(kernel::KdaOp op, const ProgramNumbers& numbers) {
  artifact::KdaOpT r;
  r.q = numbers.slot(op.getQ());
  r.k = numbers.slot(op.getK());
  r.v = numbers.slot(op.getV());
  r.f = numbers.slot(op.getF());
  r.b = numbers.slot(op.getB());
  r.gate = numbers.slot(op.getGate());
  r.decay = numbers.weight(op.getDecay());
  r.dt_bias = numbers.weight(op.getDtBias());
  r.norm = numbers.weight(op.getNorm());
  r.state = numbers.state(op.getState());
  r.out = numbers.slot(op.getOut());
  r.heads = op.getHeads();
  r.key_dim = op.getKeyDim();
  r.value_dim = op.getValueDim();
  r.eps = toFloat(op.getEps());
  r.bounded = op.getLowerBound().has_value();
  r.lower_bound = op.getLowerBound() ? toFloat(*op.getLowerBound()) : 0.0f;
  return r;
}

artifact::VmfPhaseOpT rowOf(kernel::VmfPhaseOp op, const ProgramNumbers& numbers) {
  artifact::VmfPhaseOpT r;
  r.theta_q = numbers.slot(op.getThetaQ());
  r.theta_k = numbers.slot(op.getThetaK());
  r.v = numbers.slot(op.getV());
  r.gate = numbers.slot(op.getGate());
  r.decay = numbers.weight(op.getDecay());
  r.state = numbers.state(op.getState());
  r.out = numbers.slot(op.getOut());
  r.heads = op.getHeads();
  r.phases = op.getPhases();
  r.value_dim = op.getValueDim();
  r.delta = op.getDelta();
  return r;
}

} // namespace cortiq::compiler
