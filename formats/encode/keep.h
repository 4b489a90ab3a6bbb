#pragma once

// Lossless changes of container: codecs of GGUF whose codes and scales a CMF codec can hold as they are, in another
// order. What comes out decodes to the same bits.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/codec/codec.h"
#include "formats/encode/row_source.h"

namespace cortiq::formats {

/// Rows of a tensor that are bytes at a stretch, whatever order they are in.
class ByteRows {
public:
  virtual ~ByteRows() = default;
  virtual uint64_t rows() const = 0;
  virtual uint64_t cols() const = 0;
  /// The bytes of row `row`: cols() / block blocks of the codec. Rows that have to be put together are put into
  /// `scratch`; the result holds until it changes.
  virtual const uint8_t* bytes(uint64_t row, std::vector<uint8_t>& scratch) const = 0;
};

/// One row of the table: `from` can be kept as `to`.
struct Keeper {
  CodecId from, to;
  /// Whether this row has nothing that `to` cannot hold; null where it never has.
  bool (*holds)(const uint8_t* row, uint64_t cols);
  Status (*write)(const ByteRows& rows, PayloadSink& sink, unsigned threads);
};

/// The table. Of several rows with one `from` the first whose holds() agrees is the smallest.
std::span<const Keeper* const> keeper_table();

} // namespace cortiq::formats
