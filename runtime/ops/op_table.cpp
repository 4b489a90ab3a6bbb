#include "runtime/ops/op.h"

namespace cortiq::runtime {

std::span<const OpRow> op_table() {
  static constexpr OpRow kTable[] = {
      {artifact::Op::AddOp, resolve_add},
      {artifact::Op::AttentionOp, resolve_attention},
      {artifact::Op::AttentionPrepOp, resolve_attention_prep},
      {artifact::Op::CausalConvOp, resolve_causal_conv},
      {artifact::Op::ClusterLogitsOp, resolve_cluster_logits},
      {artifact::Op::ConcatHeadsOp, resolve_concat_heads},
      {artifact::Op::EmbedOp, resolve_embed},
      {artifact::Op::GateOp, resolve_gate},
      {artifact::Op::GatedDeltaOp, resolve_gated_delta},
      {artifact::Op::GluOp, resolve_glu},
      {artifact::Op::HadamardOp, resolve_hadamard},
      {artifact::Op::KdaOp, resolve_kda},
      {artifact::Op::LayerGateOp, resolve_layer_gate},
      {artifact::Op::LogitsOp, resolve_logits},
      {artifact::Op::MatmulOp, resolve_matmul},
      {artifact::Op::MoeCombineOp, resolve_moe_combine},
      {artifact::Op::MoeGatherOp, resolve_moe_gather},
      {artifact::Op::MoeGluOp, resolve_moe_glu},
      {artifact::Op::MoeMatmulOp, resolve_moe_matmul},
      {artifact::Op::MoePlanOp, resolve_moe_plan},
      {artifact::Op::MoeRouteOp, resolve_moe_route},
      {artifact::Op::NormOp, resolve_norm},
      {artifact::Op::PlaceOp, resolve_place},
      {artifact::Op::QuantizeOp, resolve_quantize},
      {artifact::Op::ResonanceOp, resolve_resonance},
      {artifact::Op::ShortConvOp, resolve_short_conv},
      {artifact::Op::TapOp, resolve_tap},
      {artifact::Op::VmfPhaseOp, resolve_vmf_phase},
  };
  return kTable;
}

} // namespace cortiq::runtime
