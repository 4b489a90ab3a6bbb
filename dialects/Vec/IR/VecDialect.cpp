#include "dialects/Vec/IR/VecDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace cortiq::vec;

#include "dialects/Vec/IR/VecDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Vec/IR/VecTypes.cpp.inc"

void VecDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Vec/IR/VecTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Vec/IR/VecOps.cpp.inc"
      >();
}

mlir::Operation* VecDialect::materializeConstant(mlir::OpBuilder& builder, mlir::Attribute value, mlir::Type type,
                                                 mlir::Location loc) {
  if (auto integer = llvm::dyn_cast<mlir::IntegerAttr>(value); integer && type.isIndex())
    return builder.create<IndexOp>(loc, builder.getI64IntegerAttr(integer.getInt()));
  if (auto elements = llvm::dyn_cast<mlir::ElementsAttr>(value); elements && isRegisterVector(type))
    return builder.create<ConstantOp>(loc, elements);
  return nullptr;
}

bool cortiq::vec::isRegisterVector(mlir::Type type) {
  auto vector = llvm::dyn_cast<mlir::VectorType>(type);
  if (!vector || vector.getRank() != 1 || vector.isScalable() || !vector.getElementType().isIntOrFloat())
    return false;
  const int64_t bits = vector.getNumElements() * vector.getElementTypeBitWidth();
  return bits == 32 || bits == 64 || bits == 128 || bits == 256 || bits == 512;
}

unsigned cortiq::vec::getVectorBits(mlir::Type type) {
  auto vector = llvm::cast<mlir::VectorType>(type);
  return vector.getNumElements() * vector.getElementTypeBitWidth();
}
