// cmf-fuse-qkv: the products of queries, keys and values -> one fused_matmul with three weights.

#include "compiler/passes/MergeMatmuls.h"
#include "compiler/passes/Passes.h"

namespace cortiq::compiler {
#define GEN_PASS_DEF_CMFFUSEQKV
#include "compiler/passes/Passes.h.inc"
} // namespace cortiq::compiler

using namespace mlir;

namespace cortiq::compiler {
namespace {

struct Pass : impl::CmfFuseQkvBase<Pass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](cmf::AttentionOp attention) {
      const cmf::FusedMatmulOp products[] = {singleProduct(attention.getQ(), /*throughHeads=*/true),
                                             singleProduct(attention.getK(), /*throughHeads=*/true),
                                             singleProduct(attention.getV(), /*throughHeads=*/true)};
      if (shareInput(products))
        mergeProducts(rewriter, products);
    });
  }
};

} // namespace
} // namespace cortiq::compiler
