#include "compiler/passes/lowering/Lowering.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

constexpr OpLowering kRows[] = {
    {"cmf.activate", lowerActivate},
    {"cmf.add", lowerAdd},
    {"cmf.add_rms_norm", lowerAddRmsNorm},
    {"cmf.attention", lowerAttention},
    {"cmf.bias_add", lowerUnfused},
    {"cmf.causal_conv", lowerCausalConv},
    {"cmf.cluster_logits", lowerClusterLogits},
    {"cmf.concat_heads", lowerConcatHeads},
    {"cmf.dequant", lowerUnfused},
    {"cmf.embed", lowerEmbed},
    {"cmf.fused_matmul", lowerFusedMatmul, fusedMatmulForms},
    {"cmf.fused_moe", lowerFusedMoe, fusedMoeForms},
    {"cmf.gate", lowerGate},
    {"cmf.gated_delta", lowerGatedDelta},
    {"cmf.glu", lowerGlu},
    {"cmf.hadamard", lowerHadamard},
    {"cmf.kda", lowerKda},
    {"cmf.head_matmul", lowerHeadMatmul},
    {"cmf.layer_norm", lowerLayerNorm},
    {"cmf.layer_gate", lowerLayerGate},
    {"cmf.matmul", lowerUnfused},
    {"cmf.moe_experts", lowerUnfusedMoe},
    {"cmf.moe_route", lowerUnfusedMoe},
    {"cmf.overlay", lowerWeight},
    {"cmf.place", lowerPlace},
    {"cmf.resonance", lowerResonance},
    {"cmf.rms_norm", lowerRmsNorm},
    {"cmf.rope", lowerRope},
    {"cmf.scale", lowerScale},
    {"cmf.short_conv", lowerShortConv},
    {"cmf.softcap", lowerSoftcap},
    {"cmf.tap", lowerTap},
    {"cmf.vmf_phase", lowerVmfPhase},
    {"cmf.weight", lowerWeight},
    {"func.return", lowerReturn},
};

} // namespace

const OpLowering* findLowering(Operation* op) {
  for (const OpLowering& row : kRows)
    if (row.name == op->getName().getStringRef())
      return &row;
  return nullptr;
}

} // namespace cortiq::compiler
