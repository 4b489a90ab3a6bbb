#include "compiler/passes/HeadChain.h"

using namespace mlir;

namespace cortiq::compiler {

HeadChain headChain(Value operand, int64_t headDim) {
  HeadChain chain;
  chain.root = operand;
  while (chain.root.hasOneUse()) {
    Operation* def = chain.root.getDefiningOp();
    auto norm = dyn_cast_if_present<cmf::RmsNormOp>(def);
    auto rope = dyn_cast_if_present<cmf::RopeOp>(def);
    if (norm && !chain.norm && norm.getGroup() && int64_t(*norm.getGroup()) == headDim) {
      chain.norm = norm;
      chain.normLast = !chain.rope; // walking backwards: no rotation seen yet means the norm is the later one
      chain.root = norm.getX();
    } else if (rope && !chain.rope && int64_t(rope.getHeadDim()) == headDim) {
      chain.rope = rope;
      chain.root = rope.getX();
    } else {
      break;
    }
  }
  chain.normLast = chain.normLast && chain.norm && chain.rope;
  return chain;
}

FailureOr<AttentionChains> attentionChains(cmf::AttentionOp attention) {
  AttentionChains c{headChain(attention.getQ(), attention.getHeadDim()),
                    headChain(attention.getK(), attention.getHeadDim()),
                    headChain(attention.getV(), attention.getVDim())};
  auto ropeOf = [](HeadChain& chain) { return chain.rope ? chain.rope.getRopeAttr() : cmf::RopeAttr(); };
  if (ropeOf(c.q) != ropeOf(c.k) || c.v.rope)
    return attention.emitOpError() << "needs one rotation for queries and keys, and none for values", failure();
  for (HeadChain* chain : {&c.q, &c.k})
    if (chain->norm && !chain->norm.getWeight())
      return chain->norm.emitOpError() << "of query or key heads needs a weight", failure();
  if (c.v.norm && c.v.norm.getWeight())
    return c.v.norm.emitOpError() << "of value heads cannot have a weight", failure();
  if (c.q.norm && c.k.norm && c.q.normLast != c.k.normLast)
    return attention.emitOpError() << "needs norm and rotation of queries and keys in one order", failure();
  Attribute eps;
  for (HeadChain* chain : {&c.q, &c.k, &c.v}) {
    if (!chain->norm)
      continue;
    if (eps && eps != chain->norm.getEpsAttr())
      return chain->norm.emitOpError() << "needs the same eps as the other head norms of its layer", failure();
    eps = chain->norm.getEpsAttr();
  }
  // attention_prep works in place, so nobody else may read what it overwrites.
  // It leaves values without a norm as they are, and puts the queries aside for who reads them still.
  for (const HeadChain* chain : {&c.q, &c.k, &c.v})
    if (!chain->root.hasOneUse() && (chain != &c.v || chain->norm) &&
        (chain != &c.q || attention.getStill() != chain->root || !llvm::hasNItems(chain->root.getUses(), 2)))
      return attention.emitOpError() << "reads queries, keys or values that have other users", failure();
  return c;
}

} // namespace cortiq::compiler
