#pragma once

// Where encoders take rows from and where they put bytes.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/status.h"

namespace cortiq::formats {

/// A matrix whose rows can be read in any order, as often as an encoder needs, by several threads at once.
class RowSource {
public:
  virtual ~RowSource() = default;
  virtual uint64_t rows() const = 0;
  virtual uint64_t cols() const = 0;
  /// Puts the cols() values of row `row` into `out`.
  virtual void read(uint64_t row, float* out) const = 0;

  /// The values of one row.
  std::vector<float> row(uint64_t index) const {
    std::vector<float> values(cols());
    read(index, values.data());
    return values;
  }
};

/// A payload under construction.
class PayloadSink {
public:
  virtual ~PayloadSink() = default;
  /// Puts `bytes` at `offset` from the payload's start. The payload ends where its last byte was put; bytes never
  /// written are zero.
  virtual Status write_at(uint64_t offset, std::span<const uint8_t> bytes) = 0;
};

/// A payload in memory.
class MemorySink : public PayloadSink {
public:
  Status write_at(uint64_t offset, std::span<const uint8_t> bytes) override;
  std::vector<uint8_t> take() { return std::move(bytes_); }

private:
  std::vector<uint8_t> bytes_;
};

} // namespace cortiq::formats
