#pragma once

// Where the bytes behind cmf.weight operations come from: a model file, or memory.

#include <cstdint>
#include <span>
#include <vector>

#include "dialects/CMF/IR/CMF.h"
#include "formats/status.h"

namespace cortiq::cmf {

class WeightSource {
public:
  virtual ~WeightSource() = default;

  /// The whole payload of the file's tensor behind `op`, before #cmf.rows. Valid for as long as the source lives.
  virtual StatusOr<std::span<const uint8_t>> payload(WeightOp op) = 0;
};

/// Rows of the file's tensor behind `op` (values, for a vector).
int64_t sourceRows(WeightOp op);

/// The row of the file's tensor for each row of the weight, as formats::pack() takes it (for a vector: for each value);
/// empty when the weight is the whole tensor in file order.
std::vector<uint32_t> rowMap(WeightOp op);

/// Decodes row `row` of a weight matrix into `out` (getCols() floats), `payload` being that of its file's tensor.
void decodeRow(WeightOp op, std::span<const uint8_t> payload, int64_t row, float* out);

/// All values of a weight, row-major, in its own row order. Fails when the payload's size is not that of its shape.
StatusOr<std::vector<float>> decodeWeight(WeightOp op, std::span<const uint8_t> payload);

} // namespace cortiq::cmf
