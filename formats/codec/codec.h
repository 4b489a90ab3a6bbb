#pragma once

// The one codec table. Everything that the project knows of a weight codec stands in one row of it: its names and code
// points in both containers, its block geometry, the dot form it reduces to and its reference decode. The reference
// decode is the definition that every kernel and every layout is held against.
//
// Sources of the formulas: the CMF v2 specification section 2, the GGUF specification sections 2 to 8.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/status.h"

namespace cortiq::formats {

/// One codec. The same bytes with the same meaning are one codec, whichever container holds them (f16 is one codec;
/// CMF's mxfp4 and GGUF's MXFP4 are two, they store other bytes).
enum class CodecId : uint16_t {
  // Plain numbers.
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kU8 = 3,
  kU32 = 4,
  kU64 = 5,
  // CMF.
  kQ8Row = 16,
  kQ82F = 17,
  kQ4Block = 18,
  kQ4Tiled = 19,
  kQ4TP = 20,
  kVBit = 21,
  kVBitRO = 22,
  kQ1 = 23,
  kQ1S = 24,
  kQ1T = 25,
  kQ2TP = 26,
  kQ2TPAffine = 27, ///< the same payload as kQ2TP, told apart by a model's Prism record
  kBLR = 28,
  kQ1G = 29,
  kMXFP4 = 30,
  // Factors of kBLR, which artifacts hold and no file does (low_rank.h).
  kBLRU = 31,
  kBLRV = 32,
  // GGUF.
  kQ4_0 = 64,
  kQ4_1 = 65,
  kQ5_0 = 66,
  kQ5_1 = 67,
  kQ8_0 = 68,
  kQ4_K = 69,
  kQ5_K = 70,
  kQ6_K = 71,
  kIQ4_NL = 72,
  kQ2_K = 73,
  kQ3_K = 74,
  kQ8_K = 75,
  kIQ4_XS = 76,
  kIQ2_XXS = 77,
  kIQ2_XS = 78,
  kIQ2_S = 79,
  kIQ3_XXS = 80,
  kIQ3_S = 81,
  kIQ1_S = 82,
  kIQ1_M = 83,
  kTQ1_0 = 84,
  kTQ2_0 = 85,
  kMXFP4_GGML = 86,
  kNVFP4 = 87,
  kQ1_0 = 88,
  kQ2_0 = 89,
  kQ2_0_G128 = 90,
  kSTQ1_0 = 91,
  kG8_0 = 92,
  kPTQ1_0 = 93,
  kFV5 = 94,
  kFV5B = 95,
  kI2_S = 96,
  kI8_S = 97,
};

/// What arithmetic a codec's dot product reduces to (design.md, "Codecs: one table").
enum class DotForm : uint8_t {
  kAffineInt, ///< integer level x scale [+ minimum]: integer dot instructions apply
  kTable16,   ///< a 16-entry table of int8 levels, then as kAffineInt
  kCodebook,  ///< a grid lookup to int8 levels and signs, then as kAffineInt
  kFloat,     ///< decode to float lanes
  kNone,      ///< raw data, never a weight
};

/// One row of the table. All sizes in bytes, all counts in weights.
struct Codec {
  CodecId id;
  std::string_view name;      ///< the word used in IR, kernel names and output: "q4_k"
  std::string_view cmf_name;  ///< its name in CMF, empty if CMF has none: "q4tp"
  std::string_view gguf_name; ///< its name in GGUF, empty if GGUF has none: "Q4_K"
  int cmf_code;               ///< dtype code in a CMF directory, -1 for none; shared by kQ2TP and kQ2TPAffine
  int gguf_code;              ///< ggml type id, -1 for none; ids 42 and 143 are shared by codecs of several writers
  uint32_t block;             ///< weights a block; a row must be whole blocks unless `flat`
  uint32_t block_bytes;       ///< bytes a block where blocks are contiguous; 0 for codecs stored in planes
  bool flat;                  ///< blocks run over row ends (CMF q4_block); cols need not be whole blocks
  bool needs_matrix;          ///< the shape must be two-dimensional
  DotForm form;

  /// Exact payload size of a rows x cols tensor (the least one where `variable_size`); fails when the shape is not
  /// permitted or the size overflows.
  /// Tensors of other ranks count as rows = product of all dimensions but the last.
  StatusOr<uint64_t> (*payload_bytes)(const Codec&, uint64_t rows, uint64_t cols);

  /// Decodes row `row` of a rows x cols tensor into `out` (cols floats). `payload` has passed check_payload().
  /// Null for raw data (kNone), which has no float decode.
  void (*decode_row)(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out);

  /// The payload ends in an f16 scale a column, which kernels want multiplied into the activations.
  bool column_scales = false;

  /// The payload itself says how long it is; validate() holds it against the shape.
  bool variable_size = false;

  /// The rules of payloads that describe themselves; null where the size is the only rule. Called by check_payload().
  Status (*validate)(const Codec&, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols,
                     bool strict) = nullptr;
};

/// The table, ordered by id.
std::span<const Codec> codec_table();

/// The row of `id`; every enumerator has one.
const Codec& codec_info(CodecId id);

/// Look-ups; null when there is no such codec. `find_codec` takes the table's name; `find_cli_codec` takes
/// "cmf:q4tp", "gguf:Q4_K" or the plain table name, the form that the tools' flags use. Of codecs that share a code,
/// the look-ups by code find the first: q2tp for 16, upstream's Q2_0 for 42, G8_0 for 143.
const Codec* find_codec(std::string_view name);
const Codec* find_cli_codec(std::string_view family_and_scheme);
const Codec* find_cmf_codec(int code);
const Codec* find_gguf_codec(uint32_t type_id);

/// The codec of a GGUF scheme, by its GGUF name or the table's, in either case: "Q4_K", "PQ2_0" or "Q2_0_g128".
const Codec* find_gguf_scheme(std::string_view scheme);

/// Holds a payload against its shape: exact size, and whatever the codec's validate() says. Without `strict` it accepts
/// all that can be decoded, with it only what the specification permits. Messages continue a sentence that starts with
/// the tensor's name.
Status check_payload(const Codec& codec, std::span<const uint8_t> payload, uint64_t rows, uint64_t cols, bool strict);

/// Number helpers shared by codecs and writers (CMF specification 2.0).
float f16_to_f32(uint16_t bits);
float bf16_to_f32(uint16_t bits);
/// IEEE round to nearest even, subnormals included.
uint16_t f32_to_f16(float value);

} // namespace cortiq::formats
