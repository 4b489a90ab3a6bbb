#include "dialects/Vec/Interp/Frame.h"

using namespace cortiq::vec;
using namespace cortiq::vec::interp;

namespace {

template <class Op>
void loadField(mlir::Operation* op, Frame& frame) {
  auto load = llvm::cast<Op>(op);
  Datum value;
  std::memcpy(value.bytes.data(), addressOf(frame, load.getPtr(), load.getOffset()), 8);
  frame[load.getResult()] = value;
}

void index(mlir::Operation* op, Frame& frame) {
  frame[op->getResult(0)].set<int64_t>(0, llvm::cast<IndexOp>(op).getValue());
}

void ptrAdd(mlir::Operation* op, Frame& frame) {
  auto add = llvm::cast<PtrAddOp>(op);
  Datum value;
  value.set<uint8_t*>(0, addressOf(frame, add.getPtr(), add.getOffset()));
  frame[add.getResult()] = value;
}

void ptrOffset(mlir::Operation* op, Frame& frame) {
  auto offset = llvm::cast<PtrOffsetOp>(op);
  const uint64_t index = frame.lookup(offset.getIndex()).get<uint64_t>(0);
  Datum value;
  value.set<uint8_t*>(0, addressOf(frame, offset.getPtr(), static_cast<int64_t>(index * offset.getScale())));
  frame[offset.getResult()] = value;
}

void readIndex(mlir::Operation* op, Frame& frame) {
  auto read = llvm::cast<ReadIndexOp>(op);
  uint32_t number = 0;
  std::memcpy(&number, addressOf(frame, read.getPtr(), read.getOffset()), 4);
  frame[read.getResult()].set<uint64_t>(0, number);
}

void tableAddress(mlir::Operation* op, Frame& frame) {
  frame[op->getResult(0)].set<const char*>(0, llvm::cast<TableOp>(op).getBytes().data());
}

void load(mlir::Operation* op, Frame& frame) {
  auto load = llvm::cast<LoadOp>(op);
  const size_t lanes = load.getLanes().value_or(lanesOf(load));
  Datum value;
  std::memcpy(value.bytes.data(), addressOf(frame, load.getPtr(), load.getOffset()), lanes * laneBytes(load));
  frame[load] = value;
}

void store(mlir::Operation* op, Frame& frame) {
  auto store = llvm::cast<StoreOp>(op);
  const size_t lanes = store.getLanes().value_or(lanesOf(store.getValue()));
  const Datum value = frame.lookup(store.getValue());
  std::memcpy(addressOf(frame, store.getPtr(), store.getOffset()), value.bytes.data(),
              lanes * laneBytes(store.getValue()));
}

void loadSplat(mlir::Operation* op, Frame& frame) {
  auto load = llvm::cast<LoadSplatOp>(op);
  const uint8_t* from = addressOf(frame, load.getPtr(), load.getOffset());
  const size_t bytes = laneBytes(load);
  Datum value;
  for (size_t i = 0; i < lanesOf(load); ++i)
    std::memcpy(value.bytes.data() + i * bytes, from, bytes);
  frame[load] = value;
}

void loadRepeated(mlir::Operation* op, Frame& frame) {
  constexpr size_t kPart = 16;
  auto load = llvm::cast<LoadRepeatedOp>(op);
  const uint8_t* from = addressOf(frame, load.getPtr(), load.getOffset());
  Datum value;
  for (size_t at = 0; at < lanesOf(load); at += kPart)
    std::memcpy(value.bytes.data() + at, from, kPart);
  frame[load] = value;
}

void gather(mlir::Operation* op, Frame& frame) {
  auto gather = llvm::cast<GatherOp>(op);
  const Datum index = frame.lookup(gather.getIndex());
  Datum value;
  for (size_t i = 0; i < lanesOf(gather); ++i) {
    const int64_t offset = index.get<int32_t>(i) * static_cast<int64_t>(gather.getScale());
    std::memcpy(value.bytes.data() + 4 * i,
                addressOf(frame, gather.getPtr(), static_cast<int64_t>(gather.getOffset()) + offset), 4);
  }
  frame[gather] = value;
}

void prefetch(mlir::Operation*, Frame&) {}

} // namespace

void cortiq::vec::interp::addMemoryOps(OpTable& table) {
  table["vec.gather"] = gather;
  table["vec.index"] = index;
  table["vec.load"] = load;
  table["vec.load_index"] = loadField<LoadIndexOp>;
  table["vec.load_ptr"] = loadField<LoadPtrOp>;
  table["vec.load_repeated"] = loadRepeated;
  table["vec.load_splat"] = loadSplat;
  table["vec.prefetch"] = prefetch;
  table["vec.ptr_add"] = ptrAdd;
  table["vec.ptr_offset"] = ptrOffset;
  table["vec.read_index"] = readIndex;
  table["vec.store"] = store;
  table["vec.table"] = tableAddress;
}
