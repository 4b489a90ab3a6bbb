// cmf-fuse-gate-up: the products of gate and up -> one fused_matmul with two weights.

#include "compiler/passes/MergeMatmuls.h"
#include "compiler/passes/Passes.h"

namespace cortiq::compiler {
#define GEN_PASS_DEF_CMFFUSEGATEUP
#include "compiler/passes/Passes.h.inc"
} // namespace cortiq::compiler

using namespace mlir;

namespace cortiq::compiler {
namespace {

struct Pass : impl::CmfFuseGateUpBase<Pass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](cmf::GluOp glu) {
      const cmf::FusedMatmulOp products[] = {singleProduct(glu.getGate(), /*throughHeads=*/false),
                                             singleProduct(glu.getUp(), /*throughHeads=*/false)};
      if (shareInput(products))
        mergeProducts(rewriter, products);
    });
  }
};

} // namespace
} // namespace cortiq::compiler
