#pragma once

// The decoder of one codec: how the packed records of 8 or 16 neighbouring rows become integer levels, scales and
// minima in vector lanes. It is the only part of a kernel that knows the codec; the cores (fast_core, exact_core) know
// only this interface. One file a codec family under decoders/, one row in decoder_table.cpp.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "codegen/kernels/emit.h"
#include "codegen/kernels/kernel_spec.h"
#include "formats/layout/layout.h"

namespace cortiq::codegen {

/// What a core has to know of a codec before it emits anything.
struct Geometry {
  unsigned block = 32;    ///< weights a record
  unsigned span = 32;     ///< weights that share a scale: 8 (signed levels only), 16 or 32; unused with row_scale
  bool is_float = false;  ///< weight() decodes to f32 directly; there are no integer levels
  bool is_signed = false; ///< levels are s8 of magnitude <= umax; else u8 in 0..umax
  unsigned umax = 15;
  unsigned zero_point = 0; ///< subtracted from unsigned levels
  bool has_min = false;    ///< w = scale * level + minimum
  bool row_scale = false;  ///< one scale a row, applied to the finished sum
  unsigned unroll = 1;     ///< records a K-loop iteration: what the codec's bit packing needs
};

/// One record of a row group: its address, and its number inside the loop iteration (0..unroll-1).
struct Record {
  Address at;
  unsigned phase = 0;
};

class Decoder {
public:
  Decoder(Emit& emit, const KernelSpec& spec, formats::R16Format format)
      : e_(emit), rows_(spec.rows), format_(std::move(format)) {}
  virtual ~Decoder() = default;

  virtual Geometry geometry() const = 0;

  /// The start of the packed tensor, for codecs whose tensor part the kernel reads.
  void set_tensor(Value tensor) { tensor_ = tensor; }

  /// Decoders that have levels cheapest in another order than the weights' own: which code of a group of 32 stands
  /// where then; empty for those that have not. A core that arranges its codes so says so, and takes steps in that
  /// order. The codes lie in the kernel's scratch: such a decoder keeps nothing of its own there.
  virtual std::vector<uint8_t> turned_order() const { return {}; }
  void take_turned() { turned_ = true; }

  /// Called at the start of every row group, before any record: loads row headers, builds ladders. `group` is the
  /// group's address, `scratch` memory of kLadderBytes for the decoder's own use.
  virtual void begin_group(Address group, Address scratch, unsigned vectors) {}

  /// Called at the start of a loop iteration of `unroll` records, the first of which is number `first` (a multiple of
  /// unroll) when that is known, with `header` the address of the row headers advanced for it.
  virtual void begin_iteration(Address header_words, unsigned vectors) {}

  /// Called before anything else is asked of a record: unpacks what its spans share.
  virtual void begin_record(const Record& record, unsigned vectors) {}

  /// Bytes by which header_words advances an iteration (q4tp's code words); 0 = it has none.
  virtual int64_t header_words_stride() const { return 0; }
  virtual int64_t header_words_offset() const { return 0; }

  /// Levels of weights 4*step..4*step+3 of the record, for the rows of vector v: one byte a weight, one 32-bit lane a
  /// row.
  virtual Value levels(const Record& record, unsigned v, unsigned step) = 0;

  /// Decoders that find the levels of the second half of a group's steps in the upper halves of bytes: those levels
  /// where they stand, times sixteen.
  virtual bool has_high_levels() const { return false; }
  virtual Value high_levels(const Record& record, unsigned v, unsigned step) { return {}; }

  /// Signed levels plus 128, for dot products that take unsigned ones.
  virtual Value raised_levels(const Record& record, unsigned v, unsigned step) {
    return e_.bit_xor(levels(record, v, step), e_.splat_i8(0x80));
  }

  /// Scale (f32 lanes) and minimum of span number `span` of the record.
  virtual Value scale(const Record& record, unsigned v, unsigned span) = 0;
  virtual Value minimum(const Record& record, unsigned v, unsigned span) { return {}; }

  /// Codecs whose spans have integer scales and minima (i32 lanes) under one float of the record each: scale() is
  /// integer_scale times record_scale, minimum() likewise. Codecs with one scale a record have only that.
  virtual bool has_integer_scales() const { return false; }
  virtual Value integer_scale(const Record& record, unsigned v, unsigned span) { return {}; }
  virtual Value integer_minimum(const Record& record, unsigned v, unsigned span) { return {}; }
  virtual Value record_scale(const Record& record, unsigned v) { return scale(record, v, 0); }
  virtual Value record_minimum(const Record& record, unsigned v) { return {}; }

  /// Scale of the row, for codecs with row_scale.
  virtual Value row_scale(Address group, unsigned v) { return {}; }

  /// Float codecs: weight number i of the record.
  virtual Value weight(const Record& record, unsigned v, unsigned i) { return {}; }

  /// Codecs with an overlay: what the records say of weight `column` (i32 lanes) of each row of vector v.
  virtual Value weight_at(Address group, unsigned v, Value column) { return {}; }

  /// The order in which a core asks for the steps of a span; neighbours in it share loads.
  virtual std::vector<unsigned> step_order(unsigned span) const;

  static constexpr int64_t kLadderBytes = 8192;

protected:
  /// Address of unit `u` of a record or header field for the rows of vector v (layout.h gives the formula).
  Address unit(Address record, const formats::LayoutField& field, unsigned u, unsigned v) const {
    return record + static_cast<int64_t>(rows_) * (field.offset + u * field.unit) +
           int64_t(v) * e_.lanes() * field.unit;
  }
  /// 32-bit unit as bytes.
  Value load_bytes(Address record, const formats::LayoutField& field, unsigned u, unsigned v) {
    return e_.load(e_.i8(), unit(record, field, u, v));
  }
  Value load_words(Address record, const formats::LayoutField& field, unsigned u, unsigned v) {
    return e_.load(e_.i32(), unit(record, field, u, v));
  }
  /// The 32 bits at byte `at` (i32 lanes) of the interleaved records number `record` (i32 lanes).
  Value gather_bytes(Address group, Value record, Value at) {
    const int64_t stride = int64_t(rows_) * format_.block_bytes;
    Value from = e_.add(e_.mul(record, e_.splat_i32(int32_t(stride))), at);
    return e_.gather_i32(group + int64_t(rows_) * format_.header_bytes, from, 1);
  }
  /// levels[nibble], of sixteen, by the low nibbles of bytes; where a lookup of 64 takes six bits, any two above do.
  Value by_low_nibbles(const std::vector<int8_t>& levels, Value bytes) {
    Value table = e_.table16(levels);
    return e_.byte_tables() ? e_.lookup64(table, bytes) : e_.lookup16(table, e_.bit_and(bytes, e_.splat_i8(0x0f)));
  }
  /// Row number times `unit` in each lane of vector v, that of the last row in lanes beyond it.
  Value row_offsets(unsigned v, unsigned unit) {
    std::vector<int32_t> lane(e_.lanes());
    for (unsigned l = 0; l < e_.lanes(); ++l)
      lane[l] = int32_t(std::min(v * e_.lanes() + l, rows_ - 1) * unit);
    return e_.lanes_i32(lane);
  }
  /// A field's first unit in record `record` (i32 lanes) of each row, in the low bits of its lane.
  Value gather_field(Address group, Value record, const formats::LayoutField& field, unsigned v) {
    Value at = e_.add(e_.splat_i32(int32_t(rows_ * field.offset)), row_offsets(v, field.unit));
    return gather_bytes(group, record, at);
  }
  /// 16-bit float unit, converted.
  Value load_f16(Address record, const formats::LayoutField& field, unsigned u, unsigned v) {
    return e_.to_f32(e_.load(e_.narrow(e_.f16_type()), unit(record, field, u, v)));
  }

  Emit& e_;
  Value tensor_;
  bool turned_ = false; ///< steps are asked for in turned_order()
  unsigned rows_;
  formats::R16Format format_;
};

/// The decoder for a spec's codec, or null when the table has none.
std::unique_ptr<Decoder> make_decoder(Emit& emit, const KernelSpec& spec, formats::R16Format format);

/// Whether the table has a decoder for the codec.
bool has_decoder(formats::CodecId codec);

} // namespace cortiq::codegen
