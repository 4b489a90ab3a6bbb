#include "dialects/CMF/IR/CMF.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/CMF/IR/CMFDialect.cpp.inc"

namespace cortiq::cmf {

namespace {

// Tables of frequencies are long and shared by many operations, so they print once, at the top.
struct AliasInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream& os) const override {
    if (isa<RopeAttr>(attr)) {
      os << "rope";
      return AliasResult::FinalAlias;
    }
    if (isa<TargetAttr>(attr)) {
      os << "target";
      return AliasResult::FinalAlias;
    }
    return AliasResult::NoAlias;
  }
};

} // namespace

void CMFDialect::initialize() {
  registerTypes();
  registerAttrs();
  addOperations<
#define GET_OP_LIST
#include "dialects/CMF/IR/CMFOps.cpp.inc"
      >();
  addInterfaces<AliasInterface>();
}

} // namespace cortiq::cmf
