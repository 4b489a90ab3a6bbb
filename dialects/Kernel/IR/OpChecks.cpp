#include "dialects/Kernel/IR/OpChecks.h"

#include "formats/layout/layout.h"

using namespace mlir;

namespace cortiq::kernel {

LogicalResult checkVector(Operation* op, SymbolTableCollection& tables, std::optional<FlatSymbolRefAttr> ref,
                          int64_t elements, StringRef what) {
  if (!ref)
    return success();
  FailureOr<WeightOp> w = lookUp<WeightOp>(op, tables, *ref, "weight");
  if (failed(w))
    return failure();
  if (w->getCodec() != "f32" || w->getLayout() != Layout::verbatim || w->getRows() * w->getCols() != uint64_t(elements))
    return op->emitOpError() << what << " must be an f32 vector of " << elements << " values, but " << *ref << " is "
                             << w->getCodec() << " with " << w->getRows() << " x " << w->getCols();
  return success();
}

LogicalResult checkSameElements(Operation* op, ArrayRef<Value> values) {
  std::optional<int64_t> elements;
  for (Value v : values) {
    if (!v)
      continue;
    int64_t n = cast<BufferType>(v.getType()).getElements();
    if (elements && *elements != n)
      return op->emitOpError() << "needs buffers of one length, found " << *elements << " and " << n << " elements";
    elements = n;
  }
  return success();
}

LogicalResult checkSomeOutput(Operation* op, ArrayRef<Value> outputs) {
  for (Value v : outputs)
    if (v)
      return success();
  return op->emitOpError() << "writes nothing: give it an output buffer";
}

LogicalResult checkBuffer(Operation* op, Value v, int64_t elements, StringRef what) {
  int64_t n = cast<BufferType>(v.getType()).getElements();
  if (n != elements)
    return op->emitOpError() << what << " must hold " << elements << " elements, not " << n;
  return success();
}

LogicalResult checkSpecFits(Operation* op, WeightOp weight, SpecAttr spec) {
  if (weight.getCodec() == spec.getCodec() && weight.getLayout() == spec.getLayout() &&
      int64_t(weight.getCols()) == spec.getK())
    return success();
  return op->emitOpError() << "has a spec that does not fit @" << weight.getSymName() << ": " << weight.getCodec()
                           << " " << stringifyLayout(weight.getLayout()) << " " << weight.getRows() << " x "
                           << weight.getCols();
}

LogicalResult checkKernels(Operation* op, SymbolTableCollection& tables, SpecAttr spec, int64_t rows, ArrayAttr kernels,
                           ArrayAttr tails) {
  if (!kernels)
    return success();
  auto check = [&](ArrayAttr list, int64_t group, bool wanted, StringRef what) -> LogicalResult {
    if (list.empty() != !wanted)
      return op->emitOpError() << (wanted ? "lacks " : "has no use for ") << what << ": the matrix has " << rows
                               << " rows";
    int64_t before = 0;
    for (auto ref : list.getAsRange<FlatSymbolRefAttr>()) {
      FailureOr<DefineOp> k = lookUp<DefineOp>(op, tables, ref, "kernel");
      if (failed(k))
        return failure();
      SpecAttr found = k->getSpec();
      // On tiles of bf16 a kernel reads what stands behind the records that those for a few tokens read.
      const Form act = found.getAct() == Form::q8a_bf16 && spec.getAct() == Form::q8a ? Form::q8a_bf16 : spec.getAct();
      if (found != spec.withTile(found.getTokens(), group).withAct(act))
        return op->emitOpError() << "names " << ref << ", whose spec differs from its own";
      if (found.getTokens() <= before)
        return op->emitOpError() << "must list kernels by ascending token tile";
      before = found.getTokens();
    }
    return success();
  };
  int64_t tail = rows % formats::kRowGroup;
  if (failed(check(kernels, formats::kRowGroup, rows >= formats::kRowGroup, "kernels for 16 rows")))
    return failure();
  return check(tails, tail, tail != 0, "kernels for a short last group");
}

} // namespace cortiq::kernel
