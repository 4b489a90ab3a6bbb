#include "compiler/emit/rows/rows.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

struct Row {
  llvm::StringLiteral name;
  void (*fill)(Operation* op, const ProgramNumbers& numbers, artifact::OpUnion& out);
};

template <class Op>
void fill(Operation* op, const ProgramNumbers& numbers, artifact::OpUnion& out) {
  out.Set(rowOf(cast<Op>(op), numbers));
}

constexpr Row kRows[] = {
    {"kernel.add", fill<kernel::AddOp>},
    {"kernel.attention", fill<kernel::AttentionOp>},
    {"kernel.attention_prep", fill<kernel::AttentionPrepOp>},
    {"kernel.causal_conv", fill<kernel::CausalConvOp>},
    {"kernel.cluster_logits", fill<kernel::ClusterLogitsOp>},
    {"kernel.concat_heads", fill<kernel::ConcatHeadsOp>},
    {"kernel.embed", fill<kernel::EmbedOp>},
    {"kernel.gate", fill<kernel::GateOp>},
    {"kernel.gated_delta", fill<kernel::GatedDeltaOp>},
    {"kernel.glu", fill<kernel::GluOp>},
    {"kernel.hadamard", fill<kernel::HadamardOp>},
    {"kernel.kda", fill<kernel::KdaOp>},
    {"kernel.layer_gate", fill<kernel::LayerGateOp>},
    {"kernel.logits", fill<kernel::LogitsOp>},
    {"kernel.matmul", fill<kernel::MatmulOp>},
    {"kernel.moe_combine", fill<kernel::MoeCombineOp>},
    {"kernel.moe_gather", fill<kernel::MoeGatherOp>},
    {"kernel.moe_glu", fill<kernel::MoeGluOp>},
    {"kernel.moe_matmul", fill<kernel::MoeMatmulOp>},
    {"kernel.moe_plan", fill<kernel::MoePlanOp>},
    {"kernel.moe_route", fill<kernel::MoeRouteOp>},
    {"kernel.norm", fill<kernel::NormOp>},
    {"kernel.place", fill<kernel::PlaceOp>},
    {"kernel.quantize", fill<kernel::QuantizeOp>},
    {"kernel.resonance", fill<kernel::ResonanceOp>},
    {"kernel.short_conv", fill<kernel::ShortConvOp>},
    {"kernel.tap", fill<kernel::TapOp>},
    {"kernel.vmf_phase", fill<kernel::VmfPhaseOp>},
};

template <class Op>
void number(ModuleOp module, llvm::StringMap<uint32_t>& numbers) {
  for (Op op : module.getOps<Op>())
    numbers.try_emplace(op.getSymName(), numbers.size());
}

} // namespace

ProgramNumbers::ProgramNumbers(ModuleOp module) {
  number<kernel::WeightOp>(module, weights_);
  number<kernel::DefineOp>(module, kernels_);
  number<kernel::KvLayerOp>(module, caches_);
  number<kernel::RopeTableOp>(module, ropes_);
  number<kernel::StateOp>(module, states_);
}

std::vector<uint32_t> ProgramNumbers::kernels(ArrayAttr symbols) const {
  std::vector<uint32_t> list;
  for (auto symbol : symbols.getAsRange<FlatSymbolRefAttr>())
    list.push_back(kernels_.lookup(symbol.getValue()));
  return list;
}

void fillRow(Operation* op, const ProgramNumbers& numbers, artifact::OpUnion& out) {
  for (const Row& row : kRows)
    if (row.name == op->getName().getStringRef())
      return row.fill(op, numbers, out);
  llvm_unreachable("the verifier lets only calls into a stage");
}

} // namespace cortiq::compiler
