#pragma once

// What the reference of one operation sees: the values computed so far, decoded weights, and the sequence's state.

#include <map>
#include <memory>
#include <vector>

#include "dialects/CMF/Interp/WeightSource.h"
#include "formats/overlay/selection.h"
#include "llvm/ADT/DenseMap.h"

namespace cortiq::cmf {

/// rows x cols numbers, row-major: tokens x features, or a decoded matrix.
struct Array {
  int64_t rows = 0, cols = 0;
  std::vector<float> data;

  Array() = default;
  Array(int64_t rows, int64_t cols) : rows(rows), cols(cols), data(rows * cols) {}
  const float* row(int64_t i) const { return data.data() + i * cols; }
  float* row(int64_t i) { return data.data() + i * cols; }
};

/// Keys and values of one layer, one entry a token.
struct LayerCache {
  std::vector<std::vector<float>> keys, values;
};

/// What a sequence has left behind.
struct SequenceMemory {
  std::map<int64_t, LayerCache> caches;            ///< by layer
  std::map<int64_t, std::vector<float>> recurrent; ///< by a recurrent operation's state number
};

/// What is in force of the model's overlay.
struct OverlayView {
  formats::OverlayCatalog catalog;
  formats::OverlaySelection selection;

  /// The mask in force, or null.
  const formats::OverlayMask* mask() const { return selection.mask ? &catalog.masks[*selection.mask] : nullptr; }
};

/// A sum of residual rows that somebody asked for, by layer.
struct ResidualTaps {
  std::map<uint32_t, std::vector<double>> sums;
  bool wanted = false;
};

/// Decoded weights, kept up to a number of bytes.
class WeightCache {
public:
  WeightCache(WeightSource& source, uint64_t capacity) : source_(source), left_(capacity) {}

  StatusOr<std::shared_ptr<const std::vector<float>>> decoded(WeightOp op);
  /// The values of a weight, or of what `selection` makes of a cmf.overlay.
  StatusOr<std::shared_ptr<const std::vector<float>>> decoded(mlir::Value v,
                                                              const formats::OverlaySelection& selection);
  StatusOr<std::span<const uint8_t>> payload(WeightOp op) { return source_.payload(op); }

private:
  WeightSource& source_;
  uint64_t left_;
  llvm::DenseMap<mlir::Operation*, std::shared_ptr<const std::vector<float>>> kept_;
};

/// One run of @forward.
class Frame {
public:
  Frame(WeightCache& weights, SequenceMemory& memory, uint64_t position, const OverlayView& overlay, ResidualTaps& taps)
      : weights_(weights), memory_(memory), position_(position), overlay_(overlay), taps_(taps) {}

  const Array& value(mlir::Value v) const { return values_.find(v)->second; }
  void set(mlir::Value v, Array array) { values_[v] = std::move(array); }

  std::vector<uint32_t> ids;
  /// Position of the batch's first token.
  uint64_t position() const { return position_; }
  LayerCache& cache(int64_t layer) { return memory_.caches[layer]; }
  /// The state of a recurrent operation, zeros at the start of a sequence.
  std::vector<float>& recurrent(mlir::Operation* op);

  /// The values of a weight operand.
  StatusOr<std::shared_ptr<const std::vector<float>>> weight(mlir::Value v) {
    return weights_.decoded(v, overlay_.selection);
  }
  /// The one weight that stands for a weight operand, or null where it is a mixture of several.
  WeightOp weightOf(mlir::Value v) const;
  const OverlayView& overlay() const { return overlay_; }
  ResidualTaps& taps() { return taps_; }
  StatusOr<std::span<const uint8_t>> payload(WeightOp op) { return weights_.payload(op); }

  /// Drops the rows of all tokens but the last.
  void keepLastToken();
  /// Drops a value that nothing reads any more.
  void drop(mlir::Value v) { values_.erase(v); }

private:
  WeightCache& weights_;
  SequenceMemory& memory_;
  uint64_t position_;
  const OverlayView& overlay_;
  ResidualTaps& taps_;
  llvm::DenseMap<mlir::Value, Array> values_;
};

} // namespace cortiq::cmf
