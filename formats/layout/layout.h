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
// Codecs with an overlay (q1s, q1t: a few weights that replace what the records say) have it behind the groups, from
// overlay_offset() on, the bytes between being 0 (overlay_form.h describes it). Codecs whose rows are no records of
// equal size (vbit, vbit_ro, blr) have no R16 form.
//
// kPlanes is the layout of GPU targets: the same records with every field in a plane of its own (planes.h). Codecs
// without R16 form have none either.
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

enum class LayoutId : uint8_t { kVerbatim = 0, kR16 = 1, kPlanes = 2 };

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
/// "Pairs of bits" and "bits" below: dword u holds weights 16u + 4s + j at bits 8j + 2s, or 32u + 4s + j at bit 8j + s,
/// so that (dword >> 2s) & 0x03030303 or (dword >> s) & 0x01010101 serves four neighbours.
///   q2_k: block 256: "d", "dmin" 1 x 2, "scales" 4 x 4 (byte k: scale in the low, minimum in the high nibble of
///   weights
///     16k..), "qs" 16 x 4, pairs of bits (dword u has one scale).
///   q3_k: block 256: "d" 1 x 2, "scales" 3 x 4 (the file's 12 bytes: low nibbles of scales 4t.. are (dword t % 2 >> 4
///   *
///     (t / 2)) & 0x0f0f0f0f, high pairs (dword 2 >> 2t) & 0x03030303), "qh" 8 x 4, bits, "qs" 16 x 4, pairs of bits.
///   q8_k, fv5b: block 256: "d" f32 1 x 4, "q" 64 x 4. i8_s: block 4: "q" 1 x 4; tensor part = the file's trailer, its
///     f32 scale first.
///   tq2_0: block 256: "d" 1 x 2, "qs" 16 x 4; q2_0: block 64: "d" 1 x 2, "qs" 4 x 4; q2_0_g128: block 128: "d" 1 x 2,
///     "qs" 8 x 4; g8_0: block 32: "d" bf16 4 x 2 (8 weights each), "qs" 2 x 4; i2_s: block 128: "qs" 8 x 4, tensor
///     part as i8_s. All pairs of bits, weight = (code - 1) * d.
///   q2tp, q2tp_affine: header as q4tp (rung 0 is 0, rung c is lo * step^(c - 1)); block 32: "qs" 2 x 4, pairs of bits.
///   blr_u, blr_v: header "d" f16; block 32: "qs" 1 x 4, bits, set = +d, the last block padded with zero bits; tensor
///     part of blr_v = cols f16 column scales.
///   q1, q1s: block 32: "d" 1 x 2, "qs" 1 x 4; q1g, q1_0: block 128: "d" 1 x 2, "qs" 4 x 4. Bits, set = +d.
///   fv5: block 256: "low", "high" f32 1 x 4, "plus", "minus", "select" 8 x 4, bits.
///   tq1_0: block 256: "d" 1 x 2, "qs" 13 x 4; ptq1_0: block 128: "d" 1 x 2, "qs" 6 x 4, "qr" 2 x 1; q1t: block 32: "d"
///     1 x 2, "qs" 1 x 4, "qr" 3 x 1. Base-3 digits (codec/ternary.h): digit s of byte j of dword u belongs to weight
///     20u + 4s + j (the last dword of tq1_0 has four digits a byte); digit s < 4 of byte k of "qr" to weight 4k + s of
///     what the dwords leave. Weight = (digit - 1) * d.
///   stq1_0: block 256: "d" 1 x 2, "slots" 8 x 4, nibble h of byte j of dword u is group 8u + 4h + j, "signs" 2 x 4,
///   bits
///     of groups.
///   mxfp4, mxfp4_ggml: block 32: "e" 1 x 1, "qs" 4 x 4, halves. nvfp4: block 64: "d" 1 x 4 (a byte for 16 weights),
///     "qs" 8 x 4 (dword 2k + v: weights 16k + 4v.. in the low nibbles, 16k + 8 + 4v.. in the high ones).
///   iq4_xs: block 256: "d", "sh" 1 x 2, "sl" 1 x 4, "qs" 32 x 4 (dwords 4g..4g+3: halves of weights 32g..).
///   Codebooks, block 256, g = group of 32 weights, byte l of dword g = weights 32g + 8l.. unless said otherwise:
///   iq2_xxs: "d" 1 x 2, "qs" 8 x 4 grid indices, "signs" 8 x 4 (7-bit sign index l at bit 7l, scale in bits 28..31).
///   iq2_xs: "d" 1 x 2, "sc" 2 x 4 (byte g: nibble l / 2), "qs" 16 x 4 (16 bits for weights 8v.. in half v % 2 of dword
///     v / 2: grid index in bits 0..8, sign index in 9..15).
///   iq2_s: "d" 1 x 2, "sc" 2 x 4 as iq2_xs, "qh" 2 x 4 (byte g: bits 2l, 2l + 1 are index bits 8, 9), "qs" 8 x 4,
///     "signs" 8 x 4, whole bytes.
///   iq3_xxs: "d" 1 x 2, "signs" 8 x 4 as iq2_xxs, "qs" 16 x 4 (byte k of dword v: grid index of weights 16v + 4k..).
///   iq3_s: "d" 1 x 2, "sc" 1 x 4 (byte g / 2: nibble g % 2), "qh" 2 x 4 (byte g: bit p is index bit 8 of weights 32g +
///     4p..), "signs" 8 x 4, whole bytes, "qs" 16 x 4 as iq3_xxs.
///   iq1_s: "d" 1 x 2, "qh" 4 x 4 (16 bits for group g in half g % 2 of dword g / 2: bits 3l.. are index
///   bits 8..10, 12..14
///     the scale, 15 the sign of the shift), "qs" 8 x 4.
///   iq1_m: "sc" 2 x 4 (the file's four words, nibbles of d in their tops), "qh" 4 x 4 (nibble l % 2 of byte 2g + l /
///   2),
///     "qs" 8 x 4.
StatusOr<R16Format> r16_format(const Codec& codec, uint64_t cols);

/// Bytes of a packed rows x cols tensor, without the tail padding; the least that there can be where the codec's size
/// is variable.
StatusOr<uint64_t> packed_bytes(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols);

/// Bytes of what pack() makes of this payload, which passes check_payload(): packed_bytes() unless the codec's size is
/// variable.
StatusOr<uint64_t> packed_payload_bytes(const Codec& codec, LayoutId layout, std::span<const uint8_t> payload,
                                        uint64_t source_rows, uint64_t cols, std::span<const uint32_t> row_map);

/// Where the overlay of a packed tensor starts; fails for codecs without one.
StatusOr<uint64_t> overlay_offset(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols);

/// Holds a packed tensor against its shape: its size, and where that is variable whatever decode_packed_row() and
/// kernels have to trust.
Status check_packed(const Codec& codec, LayoutId layout, std::span<const uint8_t> packed, uint64_t rows, uint64_t cols);

/// Packs a payload. `row_map` is empty, or has one source row index for each destination row (used to bring rows of
/// interleaved RoPE pairs into half-split order, and to take some rows of a fused tensor); `rows` is then its length
/// and `source_rows` the payload's row count. `out` must have exactly packed_payload_bytes() bytes. The payload of a
/// codec of variable size is checked first.
Status pack(const Codec& codec, LayoutId layout, std::span<const uint8_t> payload, uint64_t source_rows, uint64_t cols,
            std::span<const uint32_t> row_map, std::span<uint8_t> out);

/// Decodes one row of a packed tensor, bit-equal to the reference decode of the payload it was packed from. Tensors of
/// variable size must have passed check_packed().
Status decode_packed_row(const Codec& codec, LayoutId layout, std::span<const uint8_t> packed, uint64_t rows,
                         uint64_t cols, uint64_t row, float* out);

/// Fills a packed tensor with valid random blocks: finite scales such that decoded weights have a standard deviation
/// near 0.02 (codecs of variable size: packed_bytes() bytes, without outliers, in the fewest bits or the least rank).
/// The same seed gives the same bytes on every machine.
Status fill_random(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols, uint64_t seed,
                   std::span<uint8_t> out);

} // namespace cortiq::formats
