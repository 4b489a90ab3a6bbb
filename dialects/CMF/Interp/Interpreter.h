#pragma once

// The reference: evaluates a module of the cmf dialect operation by operation in plain loops. Values are f32, sums run
// in f64. It defines what every pass and every kernel has to reproduce; it is slow.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dialects/CMF/Interp/WeightSource.h"
#include "formats/overlay/routing.h"
#include "formats/overlay/selection.h"
#include "mlir/IR/BuiltinOps.h"

namespace cortiq::cmf {

struct InterpreterOptions {
  /// Bytes of decoded weights that are kept; what does not fit is decoded again each time.
  uint64_t cacheBytes = uint64_t{2} << 30;
};

/// One model and the state of one sequence.
class Interpreter {
public:
  /// `module` and `weights` must outlive the interpreter. Fails when the module has no @forward or holds an operation
  /// without a reference. The module must be verified (its own verifiers, and cmf-verify-model).
  static StatusOr<Interpreter> create(mlir::ModuleOp module, WeightSource& weights, InterpreterOptions options = {});

  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;
  ~Interpreter();

  /// Logits a token.
  uint64_t vocab() const;
  /// The context that the model was trained for.
  uint64_t trainedContext() const;
  /// Tokens held so far.
  uint64_t position() const;

  /// Appends `tokens`, at least one. The logits of every token when `allLogits`, else of the last; valid until the next
  /// call. Fails for an id beyond the vocabulary and for a weight without bytes; the state is then as before.
  StatusOr<std::span<const float>> forward(std::span<const uint32_t> tokens, bool allLogits);

  /// The skills and masks of the module.
  const formats::OverlayCatalog& overlay() const;
  /// Puts a selection of that catalog in force, from the next forward() on; at first its default mask is. The state
  /// stays: what was computed before belongs to the former selection.
  void setOverlay(const formats::OverlaySelection& selection);
  /// Mean of the residual stream over `tokens` behind the layers that have a cmf.tap, from an empty state, without
  /// skill and mask. The state is empty afterwards, the selection as before.
  StatusOr<formats::ResidualMeans> residualMeans(std::span<const uint32_t> tokens);

  /// Forgets everything after the first `position` tokens.
  void rewind(uint64_t position);
  void reset() { rewind(0); }

private:
  struct State;
  explicit Interpreter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace cortiq::cmf
