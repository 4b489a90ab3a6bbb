#include "compiler/emit/rows/rows.h"

namespace cortiq::compiler {

artifact::AttentionPrepOpT rowOf(kernel::AttentionPrepOp op, const ProgramNumbers& numbers) {
  artifact::AttentionPrepOpT r;
  r.q = numbers.slot(op.getQ());
  r.k = numbers.slot(op.getK());
  r.v = numbers.slot(op.getV());
  r.layer = numbers.cache(op.getCache());
  r.heads = op.getHeads();
  r.head_dim = op.getHeadDim();
  r.q_norm = numbers.weight(op.getQNorm());
  r.k_norm = numbers.weight(op.getKNorm());
  r.norm_eps = toFloat(op.getNormEps());
  r.norm_after_rope = op.getNormAfterRope();
  r.v_norm = op.getVNorm();
  r.rope = numbers.rope(op.getRope());
  r.temperature_length = toFloat(op.getTemperatureLength());
  r.temperature_scale = toFloat(op.getTemperatureScale());
  r.q_still = numbers.slot(op.getStill());
  return r;
}

artifact::AttentionOpT rowOf(kernel::AttentionOp op, const ProgramNumbers& numbers) {
  artifact::AttentionOpT r;
  r.q = numbers.slot(op.getQ());
  r.layer = numbers.cache(op.getCache());
  r.heads = op.getHeads();
  r.head_dim = op.getHeadDim();
  r.scale = toFloat(op.getScale());
  r.softcap = toFloat(op.getSoftcap());
  r.sinks = numbers.weight(op.getSinks());
  setResults(op, numbers, r);
  r.q_still = numbers.slot(op.getStill());
  r.sink_k = numbers.weight(op.getAnchorKeys());
  r.sink_v = numbers.weight(op.getAnchorValues());
  r.sink_count = op.getAnchorCount();
  if (op.getGroupWindows())
    r.group_windows.assign(op.getGroupWindows()->begin(), op.getGroupWindows()->end());
  return r;
}

} // namespace cortiq::compiler
