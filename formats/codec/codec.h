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
  int cmf_code;               ///< dtype code in a CMF directory, -1 for none
  int gguf_code;              ///< ggml type id, -1 for none
  uint32_t block;             ///< weights a block; a row must be whole blocks unless `flat`
  uint32_t block_bytes;       ///< bytes a block where blocks are contiguous; 0 for codecs stored in planes
  bool flat;                  ///< blocks run over row ends (CMF q4_block); cols need not be whole blocks
  bool needs_matrix;          ///< the shape must be two-dimensional
  DotForm form;

  /// Exact payload size of a rows x cols tensor; fails when the shape is not permitted or the size overflows.
  /// Tensors of other ranks count as rows = product of all dimensions but the last.
  StatusOr<uint64_t> (*payload_bytes)(const Codec&, uint64_t rows, uint64_t cols);

  /// Decodes row `row` of a rows x cols tensor into `out` (cols floats). `payload` has the size of payload_bytes().
  /// Null for raw data (kNone), which has no float decode.
  void (*decode_row)(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out);
};

/// The table, ordered by id.
std::span<const Codec> codec_table();

/// The row of `id`; every enumerator has one.
const Codec& codec_info(CodecId id);

/// Look-ups; null when there is no such codec. `find_codec` takes the table's name; `find_cli_codec` takes
/// "cmf:q4tp", "gguf:Q4_K" or the plain table name, the form that the tools' flags use.
const Codec* find_codec(std::string_view name);
const Codec* find_cli_codec(std::string_view family_and_scheme);
const Codec* find_cmf_codec(int code);
const Codec* find_gguf_codec(uint32_t type_id);

/// Number helpers shared by codecs and writers (CMF specification 2.0).
float f16_to_f32(uint16_t bits);
float bf16_to_f32(uint16_t bits);
/// IEEE round to nearest even, subnormals included.
uint16_t f32_to_f16(float value);

} // namespace cortiq::formats
