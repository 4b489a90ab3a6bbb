#include "dialects/Vec/Interp/Interpreter.h"

#include "dialects/Vec/Interp/Frame.h"

using namespace cortiq::vec;
using namespace cortiq::vec::interp;

namespace {

const OpTable& opTable() {
  static const OpTable table = [] {
    OpTable rows;
    addByteOps(rows);
    addLaneOps(rows);
    addMemoryOps(rows);
    addProductOps(rows);
    addTileOps(rows);
    return rows;
  }();
  return table;
}

llvm::LogicalResult runBlock(mlir::Block& block, Frame& frame);

llvm::LogicalResult runLoop(LoopOp loop, Frame& frame) {
  llvm::SmallVector<Datum> carried;
  for (mlir::Value init : loop.getInitArgs())
    carried.push_back(frame.lookup(init));
  const int64_t hi = frame.lookup(loop.getHi()).get<int64_t>(0);
  for (int64_t i = frame.lookup(loop.getLo()).get<int64_t>(0); i < hi; i += loop.getStep()) {
    frame[loop.getInductionVar()].set<int64_t>(0, i);
    for (auto [argument, value] : llvm::zip(loop.getCarried(), carried))
      frame[argument] = value;
    if (failed(runBlock(loop.getBlock(), frame)))
      return llvm::failure();
    for (auto [value, yielded] : llvm::zip(carried, loop.getYielded()))
      value = frame.lookup(yielded);
  }
  for (auto [result, value] : llvm::zip(loop.getResults(), carried))
    frame[result] = value;
  return llvm::success();
}

llvm::LogicalResult runBlock(mlir::Block& block, Frame& frame) {
  for (mlir::Operation& op : block.without_terminator()) {
    if (auto loop = llvm::dyn_cast<LoopOp>(op)) {
      if (failed(runLoop(loop, frame)))
        return llvm::failure();
      continue;
    }
    const auto row = opTable().find(op.getName().getStringRef());
    if (row == opTable().end())
      return op.emitError("the vec interpreter has no row for this op");
    row->second(&op, frame);
  }
  return llvm::success();
}

} // namespace

llvm::LogicalResult cortiq::vec::interpretKernel(KernelOp kernel, const void* args) {
  Frame frame;
  frame[kernel.getBlock().getArgument(0)].set<const void*>(0, args);
  return runBlock(kernel.getBlock(), frame);
}
