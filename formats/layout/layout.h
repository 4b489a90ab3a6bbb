#pragma once

// Weight layouts: lossless reorderings of a codec's payload for a target's kernels. A layout never changes a decoded
// value, and grows a tensor of 512 columns or more by at most 2 %.
//
// kVerbatim is the payload as it stands in the file.
//
// kR16 ("16-row groups") is the layout of every CPU target. Rows are cut into groups of 16; the last group has the
// R = rows % 16 rows that remain and no padding rows. One row is first brought into *canonical record form*: a row
// header, then one record a block; both are lists of fields, each field a number of units of 1, 2 or 4 bytes. A group
// then holds the records of its R rows interleaved unit by unit, so that a vector load finds the same unit of R
// neighbouring rows side by side (lane = row):
//
//   offset(field, block b, unit u, row r) = R * (header_bytes + b * block_bytes + field.offset + u * field.unit) + r *
//   field.unit offset(header field, unit u, row r)   = R * (field.offset + u * field.unit) + r * field.unit
//
// both counted from the group's start; group g starts at tensor_bytes + 16 * g * row_bytes, where tensor_bytes is the
// size of the part that belongs to the whole tensor (q8_2f's column scales), padded to 64. row_bytes = header_bytes +
// blocks * block_bytes. Code order inside a field is chosen for the kernels: see the field comments of r16_format().
//
// A packed tensor is followed by kLayoutTailPadding readable bytes, because vector loads of a short last group read
// past it.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/codec/codec.h"
#include "formats/status.h"

namespace cortiq::formats {

enum class LayoutId : uint8_t { kVerbatim = 0, kR16 = 1 };

inline constexpr uint32_t kRowGroup = 16;
inline constexpr uint64_t kLayoutTailPadding = 64;

/// A run of `count` units of `unit` bytes, `offset` bytes into its header or block record.
struct LayoutField {
  std::string_view name; ///< "d", "dmin", "qs", …: the words of the codec's specification
  uint32_t offset;
  uint32_t unit;
  uint32_t count;
};

/// The canonical record form of one codec for one row length.
struct R16Format {
  uint32_t block;        ///< weights a block record
  uint64_t blocks;       ///< block records a row; the last may be partly padding (plain floats: none)
  uint32_t header_bytes; ///< a row's header record
  uint32_t block_bytes;  ///< one block record
  uint64_t tensor_bytes; ///< the tensor part in front of the groups, a multiple of 64; 0 for most codecs
  std::vector<LayoutField> header;
  std::vector<LayoutField> fields;

  uint64_t row_bytes() const { return header_bytes + blocks * block_bytes; }
  const LayoutField& header_field(std::string_view name) const; ///< asserts that it exists
  const LayoutField& field(std::string_view name) const;        ///< asserts that it exists
};

/// The R16 form of `codec` for rows of `cols` weights, or why there is none (then kVerbatim serves).
/// Fields, by codec ("N x U": N units of U bytes; "halves" = dword u holds weights 4u..4u+3 in its low nibbles and
/// 16+4u.. in its high):
///   f32: "w" 1 x 4. f16, bf16: "w" 1 x 2. Block = 1 weight.
///   q8_row: header "d" f16; block of 4: "q" 1 x 4; the last block is padded with zero codes.
///   q8_2f: as q8_row; tensor part = cols f16 column scales.
///   q4_block (cols % 32 == 0), q4_tiled: block 32: "d" 1 x 2, "qs" 4 x 4, halves.
///   q4tp: header "lo" f32 2^lo and "step" f32 2^step (both by exp2f), "codes" ceil(blocks/6) x 4 (code of block b is
///     bits 5*(b%6).. of word b/6); block 32: "qs" 4 x 4, halves.
///   q4_0, iq4_nl: block 32: "d" 1 x 2, "qs" 4 x 4 (halves as in the file).
///   q4_1: "d", "m" 1 x 2, "qs" 4 x 4. q5_0: "d" 1 x 2, "qh" 1 x 4, "qs" 4 x 4; q5_1: "d", "m", "qh", "qs".
///     Bit 8*j + s of "qh" belongs to weight 4*s + j (so that (qh >> s) & 0x01010101 serves weights 4s..4s+3).
///   q8_0: "d" 1 x 2, "q" 8 x 4.
///   q4_k: block 256: "d", "dmin" 1 x 2, "scales" 3 x 4, "qs" 32 x 4; q5_k: the same with "qh" 8 x 4 before "qs".
///   q6_k: "d" 1 x 2, "scales" 4 x 4, "ql" 32 x 4, "qh" 16 x 4. All in file order.
StatusOr<R16Format> r16_format(const Codec& codec, uint64_t cols);

/// Bytes of a packed rows x cols tensor, without the tail padding.
StatusOr<uint64_t> packed_bytes(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols);

/// Packs a payload. `row_map` is empty, or has one source row index for each destination row (used to bring rows of
/// interleaved RoPE pairs into half-split order, and to take some rows of a fused tensor); `rows` is then its length
/// and `source_rows` the payload's row count. `out` must have exactly packed_bytes() bytes.
Status pack(const Codec& codec, LayoutId layout, std::span<const uint8_t> payload, uint64_t source_rows, uint64_t cols,
            std::span<const uint32_t> row_map, std::span<uint8_t> out);

/// Decodes one row of a packed tensor, bit-equal to the reference decode of the payload it was packed from.
Status decode_packed_row(const Codec& codec, LayoutId layout, std::span<const uint8_t> packed, uint64_t rows,
                         uint64_t cols, uint64_t row, float* out);

/// Fills a packed tensor with valid random blocks: finite scales such that decoded weights have a standard deviation
/// near 0.02. The same seed gives the same bytes on every machine.
Status fill_random(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols, uint64_t seed,
                   std::span<uint8_t> out);

} // namespace cortiq::formats
