#include "dialects/CMF/Interp/OpTable.h"

namespace cortiq::cmf {

namespace {

struct Row {
  llvm::StringLiteral name;
  OpReference reference;
};

constexpr Row kRows[] = {
    {"cmf.activate", referenceActivate},
    {"cmf.add", referenceAdd},
    {"cmf.add_rms_norm", referenceAddRmsNorm},
    {"cmf.attention", referenceAttention},
    {"cmf.bias_add", referenceBiasAdd},
    {"cmf.causal_conv", referenceCausalConv},
    {"cmf.cluster_logits", referenceClusterLogits},
    {"cmf.concat_heads", referenceConcatHeads},
    {"cmf.dequant", referenceDequant},
    {"cmf.embed", referenceEmbed},
    {"cmf.fused_matmul", referenceFusedMatmul},
    {"cmf.fused_moe", referenceFusedMoe},
    {"cmf.gate", referenceGate},
    {"cmf.gated_delta", referenceGatedDelta},
    {"cmf.glu", referenceGlu},
    {"cmf.hadamard", referenceHadamard},
    {"cmf.kda", referenceKda},
    {"cmf.head_matmul", referenceHeadMatmul},
    {"cmf.layer_norm", referenceLayerNorm},
    {"cmf.layer_gate", referenceLayerGate},
    {"cmf.matmul", referenceMatmul},
    {"cmf.moe_experts", referenceMoeExperts},
    {"cmf.moe_route", referenceMoeRoute},
    {"cmf.place", referencePlace},
    {"cmf.resonance", referenceResonance},
    {"cmf.rms_norm", referenceRmsNorm},
    {"cmf.rope", referenceRope},
    {"cmf.scale", referenceScale},
    {"cmf.short_conv", referenceShortConv},
    {"cmf.softcap", referenceSoftcap},
    {"cmf.tap", referenceTap},
    {"cmf.vmf_phase", referenceVmfPhase},
};

} // namespace

OpReference findReference(mlir::Operation* op) {
  for (const Row& row : kRows)
    if (row.name == op->getName().getStringRef())
      return row.reference;
  return nullptr;
}

} // namespace cortiq::cmf
