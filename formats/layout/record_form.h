#pragma once

// How one codec's rows become the canonical records of layout.h, and back. A codec states this once, in the table of
// record_form.cpp; packing, decoding and filling are then the same code for all.

#include <cstdint>
#include <cstring>
#include <span>

#include "formats/codec/codec.h"
#include "formats/layout/layout.h"
#include "formats/layout/overlay_form.h"
#include "formats/layout/plane_order.h"
#include "formats/layout/random_stream.h"

namespace cortiq::formats {

/// The standard deviation that fill_random aims at.
inline constexpr float kFillDeviation = 0.02f;

inline constexpr int kMaxPlanes = 3;

/// A payload is up to three planes one after the other, each with the same number of bytes for every row, then a part
/// that all rows share. Codecs of contiguous blocks have one plane.
struct PlaneSizes {
  uint64_t row_bytes[kMaxPlanes] = {};
  uint64_t shared_bytes = 0;

  uint64_t row_total() const { return row_bytes[0] + row_bytes[1] + row_bytes[2]; }
};

/// Where one row's parts stand.
struct RowPlanes {
  const uint8_t* plane[kMaxPlanes];
};
struct MutableRowPlanes {
  uint8_t* plane[kMaxPlanes];
};

/// Row `row` of a payload of `rows` rows.
RowPlanes row_planes(const PlaneSizes& sizes, const uint8_t* payload, uint64_t rows, uint64_t row);
MutableRowPlanes row_planes(const PlaneSizes& sizes, uint8_t* payload, uint64_t rows, uint64_t row);

/// Consecutive fields of equal units, which are woven as one.
struct UnitRun {
  uint32_t offset;
  uint32_t unit;
  uint64_t count;
};

/// The runs of one record, from its fields.
class RunList {
public:
  explicit RunList(std::span<const LayoutField> fields);
  const UnitRun* begin() const { return runs_; }
  const UnitRun* end() const { return runs_ + count_; }
  /// True when all units of a record are equal: then records that follow each other are one run too.
  bool uniform() const { return count_ == 1; }

private:
  UnitRun runs_[8];
  int count_ = 0;
};

struct RecordForm;

/// One row inside a packed group.
struct PackedRow {
  const RecordForm& form;
  const uint8_t* group;  ///< start of the row's group
  const uint8_t* tensor; ///< start of the packed tensor
  uint32_t rows;         ///< rows of the group, R
  uint32_t lane;         ///< the row's place in it
  uint32_t header_bytes;

  /// `count` units of the header from byte `offset` on.
  void read_header(uint32_t offset, uint32_t unit, uint64_t count, uint8_t* out) const;
  /// Block records first … first + count - 1, as they were before weaving.
  void read_records(uint64_t first, uint64_t count, uint8_t* out) const;
};

/// Weights that are decoded at a time, and the bytes that their records have at most.
inline constexpr uint64_t kDecodeChunk = 1024;
inline constexpr uint64_t kDecodeChunkBytes = 4 * kDecodeChunk;

struct RecordForm {
  CodecId codec;
  uint32_t block;
  uint32_t block_bytes;
  std::span<const LayoutField> header = {}; ///< fields of fixed size
  std::span<const LayoutField> fields;
  uint32_t blocks_per_code_word = 0; ///< if not 0, the header ends with "codes", a dword for this many blocks
  uint32_t shared_bytes_per_col = 0; ///< bytes a column of the tensor part
  uint32_t shared_bytes = 0;         ///< and bytes of it that the columns don't count for

  PlaneSizes (*planes)(uint64_t cols);

  /// Writes a row's header record; null when there is none.
  void (*write_header)(const RowPlanes& row, uint64_t cols, uint8_t* out) = nullptr;

  /// Writes block records first … first + count - 1 of a row.
  void (*write_records)(const RowPlanes& row, uint64_t cols, uint64_t first, uint64_t count, uint8_t* out);

  /// Decodes the `weights` weights of records first … first + count - 1; at most kDecodeChunk of them.
  void (*decode)(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out);

  /// Makes one row of random payload.
  void (*fill_row)(RandomStream& random, uint64_t cols, const MutableRowPlanes& row);

  /// Makes the random shared part; null when there is none.
  void (*fill_shared)(RandomStream& random, uint64_t cols, uint8_t* shared) = nullptr;

  /// Another order of the block records in kPlanes; null for most codecs.
  const PlaneOrder* plane_order = nullptr;

  /// What lies beside the records; null for most codecs. decode() leaves it to its caller.
  const OverlayForm* overlay = nullptr;
};

/// The form of `codec`, or null for raw data and for codecs that stay in their file's form (stream_form.h).
const RecordForm* find_record_form(CodecId codec);

// Building blocks of forms whose payload is contiguous blocks.

/// One plane of blocks.
template <uint32_t kBlock, uint32_t kBytes>
PlaneSizes block_planes(uint64_t cols) {
  return {.row_bytes = {cols / kBlock * kBytes}};
}

/// Records that are the file's blocks as they stand.
template <uint32_t kBytes>
void copy_records(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  std::memcpy(out, row.plane[0] + first * kBytes, count * kBytes);
}

/// Records made block by block; Convert is void(const uint8_t* block, uint8_t* record).
template <uint32_t kBytes, auto Convert>
void convert_records(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  for (uint64_t b = 0; b < count; ++b)
    Convert(row.plane[0] + (first + b) * kBytes, out + b * kBytes);
}

/// Decodes records that are the file's blocks as they stand.
void decode_copied(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out);

/// Decodes records by bringing them back to the file's blocks; Convert is void(const uint8_t* record, uint8_t* block).
template <uint32_t kBytes, auto Convert>
void decode_converted(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunkBytes];
  uint8_t blocks[kDecodeChunkBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b)
    Convert(records + b * kBytes, blocks + b * kBytes);
  codec_info(row.form.codec).decode_row(blocks, 1, weights, 0, out);
}

/// A form of contiguous blocks.
template <uint32_t kBlock, uint32_t kBytes>
constexpr RecordForm block_form(CodecId codec, std::span<const LayoutField> fields,
                                decltype(RecordForm::write_records) write, decltype(RecordForm::decode) decode,
                                decltype(RecordForm::fill_row) fill) {
  return {
      .codec = codec,
      .block = kBlock,
      .block_bytes = kBytes,
      .fields = fields,
      .planes = block_planes<kBlock, kBytes>,
      .write_records = write,
      .decode = decode,
      .fill_row = fill,
  };
}

/// One whose records are the file's blocks as they stand.
template <uint32_t kBlock, uint32_t kBytes>
constexpr RecordForm copied_form(CodecId codec, std::span<const LayoutField> fields,
                                 decltype(RecordForm::fill_row) fill) {
  return block_form<kBlock, kBytes>(codec, fields, copy_records<kBytes>, decode_copied, fill);
}

/// One where kTo makes a record of a block, and kFrom the block of the record.
template <uint32_t kBlock, uint32_t kBytes, auto kTo, auto kFrom>
constexpr RecordForm converted_form(CodecId codec, std::span<const LayoutField> fields,
                                    decltype(RecordForm::fill_row) fill) {
  return block_form<kBlock, kBytes>(codec, fields, convert_records<kBytes, kTo>, decode_converted<kBytes, kFrom>, fill);
}

/// `form` with another order of its blocks in kPlanes.
constexpr RecordForm in_plane_order(RecordForm form, const PlaneOrder& order) {
  form.plane_order = &order;
  return form;
}

// Building blocks of forms whose payload is a plane of codes and a plane of scales.

/// Records of a block's scale, kScale bytes, then its kCodes bytes of codes as kTo makes them.
template <uint32_t kScale, uint32_t kCodes, auto kTo>
void join_records(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  for (uint64_t b = first; b < first + count; ++b, out += kScale + kCodes) {
    std::memcpy(out, row.plane[1] + kScale * b, kScale);
    kTo(row.plane[0] + kCodes * b, out + kScale);
  }
}

template <uint32_t kScale, uint32_t kCodes, auto kFrom>
void decode_joined(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunkBytes];
  uint8_t payload[kDecodeChunkBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b) {
    const uint8_t* record = records + (kScale + kCodes) * b;
    kFrom(record + kScale, payload + kCodes * b);
    std::memcpy(payload + kCodes * count + kScale * b, record, kScale);
  }
  codec_info(row.form.codec).decode_row(payload, 1, weights, 0, out);
}

/// A form of such planes; kTo and kFrom convert the codes of one block.
template <uint32_t kBlock, uint32_t kScale, uint32_t kCodes, auto kTo, auto kFrom>
constexpr RecordForm joined_form(CodecId codec, std::span<const LayoutField> fields,
                                 decltype(RecordForm::fill_row) fill) {
  RecordForm form = block_form<kBlock, kScale + kCodes>(codec, fields, join_records<kScale, kCodes, kTo>,
                                                        decode_joined<kScale, kCodes, kFrom>, fill);
  form.planes = [](uint64_t cols) { return PlaneSizes{.row_bytes = {cols / kBlock * kCodes, cols / kBlock * kScale}}; };
  return form;
}

// Building blocks of forms whose rows have one scale.

inline constexpr LayoutField kRowScale[] = {{"d", 0, 2, 1}};

/// `form` with plane 1, an f16 scale a row, in its header.
constexpr RecordForm with_row_scale(RecordForm form, decltype(RecordForm::planes) planes) {
  form.header = kRowScale;
  form.planes = planes;
  form.write_header = [](const RowPlanes& row, uint64_t, uint8_t* out) { std::memcpy(out, row.plane[1], 2); };
  return form;
}

} // namespace cortiq::formats
