#pragma once

// A tensor of the result as rows, taken from wherever the source has them.

#include <atomic>

#include "formats/encode/keep.h"
#include "formats/encode/row_source.h"
#include "tools/cortiq-convert/source_model.h"

namespace cortiq::convert {

/// Vectors are one row. Values are decoded as they are read; bytes() is for matrices that are movable() and whose
/// columns, if they move, do so by whole blocks.
class TensorRows : public formats::RowSource, public formats::ByteRows {
public:
  explicit TensorRows(const SourceTensor& source);

  uint64_t rows() const override { return rows_; }
  uint64_t cols() const override { return cols_; }
  void read(uint64_t row, float* out) const override;
  const uint8_t* bytes(uint64_t row, std::vector<uint8_t>& scratch) const override;

  /// Whether read() has met a value that is not finite.
  bool met_nonfinite() const { return nonfinite_; }

private:
  uint64_t source_index(uint64_t index) const {
    return source_.first_row + (source_.order ? source_.order(index) : index);
  }
  /// Counts a row that was read. Pages of what was read are given back now and then, so that one large tensor does not
  /// fill the memory; rows that are read again are only slower.
  void count_row() const;
  void read_vector(float* out) const;
  void read_matrix(uint64_t row, float* out) const;

  const SourceTensor& source_;
  uint64_t rows_, cols_;
  uint64_t release_every_; ///< rows
  mutable std::atomic<uint64_t> read_ = 0;
  mutable std::atomic<bool> nonfinite_ = false;
};

} // namespace cortiq::convert
