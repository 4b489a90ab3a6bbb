#pragma once

// The module attribute `cmf.overlay_catalog`: a formats::OverlayCatalog as a dictionary.

#include "dialects/CMF/IR/CMF.h"
#include "formats/overlay/catalog.h"
#include "mlir/IR/BuiltinOps.h"

namespace cortiq::cmf {

inline constexpr llvm::StringLiteral kOverlayCatalogAttr = "cmf.overlay_catalog";
/// The attribute of operations whose result a task mask cuts: a MaskAttr.
inline constexpr llvm::StringLiteral kMaskAttr = "cmf.mask";

/// Sets the attribute; removes it when the catalog is empty.
void setOverlayCatalog(mlir::ModuleOp module, const formats::OverlayCatalog& catalog);

/// What the attribute says; an empty catalog without one. Entries that are absent, or of another type, have their
/// defaults: the attribute is made by setOverlayCatalog().
formats::OverlayCatalog overlayCatalog(mlir::ModuleOp module);

} // namespace cortiq::cmf
