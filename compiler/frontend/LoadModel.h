#pragma once

// From a model file to IR and the bytes behind it.

#include <memory>
#include <string>
#include <vector>

#include "dialects/CMF/Interp/WeightSource.h"
#include "formats/cmf/cmf_file.h"
#include "formats/gguf/gguf_file.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace cortiq::compiler {

/// A model file, opened, and its module. Exactly one of `cmf` and `gguf` is set.
struct LoadedModel {
  std::unique_ptr<formats::CmfFile> cmf;
  std::unique_ptr<formats::GgufFile> gguf;
  mlir::OwningOpRef<mlir::ModuleOp> module;   ///< unfused; passed cmf-verify-model's checks by construction
  std::unique_ptr<cmf::WeightSource> weights; ///< payloads of its cmf.weight operations; lives as long as the file
  std::vector<std::string> warnings;          ///< one sentence each, for the user
};

/// What a user asks of a model beyond what its file says.
struct LoadOptions {
  uint64_t maxContext = 0;   ///< positions to be served; 0 = nobody said
  bool vectorLadder = false; ///< q4tp's scales as the reference's vector kernels compute them, not as exp2f does
};

/// Opens a CMF or GGUF model and builds its module in `context`. Every failure is one sentence that starts with the
/// file's name.
StatusOr<LoadedModel> loadModel(const std::string& path, mlir::MLIRContext& context, const LoadOptions& options = {});

} // namespace cortiq::compiler
