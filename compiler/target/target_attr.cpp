#include "compiler/target/target_attr.h"

#include "mlir/IR/Builders.h"

namespace cortiq::compiler {

cmf::TargetAttr targetAttr(mlir::MLIRContext* context, const Target& target) {
  mlir::Builder b(context);
  llvm::SmallVector<llvm::StringRef> features;
  for (std::string_view feature : target.features)
    features.push_back(feature);
  return cmf::TargetAttr::get(context, b.getStringAttr(std::string(target.name)), b.getStrArrayAttr(features),
                              target.vectorBytes, b.getDenseI64ArrayAttr(target.tokenTiles), target.l1Bytes,
                              target.l2Bytes, target.cores);
}

} // namespace cortiq::compiler
