#pragma once

// The bytes of an artifact's weights, made from the payloads of the model file.

#include <cstdint>
#include <functional>
#include <span>

#include <memory>
#include <vector>

#include "compiler/artifact/writer.h"
#include "dialects/Kernel/IR/KernelDialect.h"

namespace cortiq::compiler {

/// The bytes of part `file` of the model (0 for a model of one file). They outlive every use of the filler.
using ModelBytes = std::function<std::span<const uint8_t>(uint32_t file)>;

/// Packs weight n of the module's table into its layout: matrices by formats::pack(), vectors by decoding to f32.
/// `table` is the module's weight table; weights of variable size get the size of their own payload there. Fails,
/// naming the weight, where a source is missing or does not fit the weight. Rows behind the module's own are the same
/// tensors in another layout: `copies` says of which weight each is one.
StatusOr<WeightFiller> makeWeightFiller(mlir::ModuleOp module, const ModelBytes& model,
                                        std::span<const std::unique_ptr<artifact::WeightT>> table,
                                        std::span<const uint32_t> copies = {});

} // namespace cortiq::compiler
