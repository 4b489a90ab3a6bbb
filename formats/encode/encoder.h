#pragma once

// Encoders: float matrices to CMF payloads, by the rules of specification section 2. A payload never has to be in
// memory whole: encoders pull rows and push bytes.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/codec/codec.h"
#include "formats/encode/row_source.h"
#include "formats/status.h"

namespace cortiq::formats {

struct EncodeOptions {
  unsigned threads = 1;
  double mean_bits = 4.25;     ///< vbit, vbit_ro: what the rows' widths aim at
  double kept_outliers = 0.01; ///< q1s: the part of the weights, largest first, that goes to the overlay
};

/// One row of the encoder table.
struct Encoder {
  CodecId codec;
  /// Writes the payload of all rows of `source`. The shape has passed check_encodable(), every value is finite. Same
  /// values, same bytes, whatever the number of threads.
  Status (*encode)(const RowSource& source, PayloadSink& sink, const EncodeOptions& options);
};

/// The table, ordered by codec id.
std::span<const Encoder* const> encoder_table();

/// The encoder of `codec`; null where there is none.
const Encoder* find_encoder(CodecId codec);

/// Fails unless a rows x cols matrix can be stored in `codec`. Messages continue a sentence that starts with the
/// tensor's name.
Status check_encodable(const Codec& codec, uint64_t rows, uint64_t cols);

/// A whole payload in memory.
StatusOr<std::vector<uint8_t>> encode_matrix(const Encoder& encoder, std::span<const float> values, uint64_t rows,
                                             uint64_t cols, const EncodeOptions& options = {});

} // namespace cortiq::formats
