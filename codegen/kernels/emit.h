#pragma once

// A thin layer over the vec dialect's builders: the vocabulary in which decoders and cores are written. It knows the
// target's lane count and keeps constants at the top of the kernel, so that no loop body holds one.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include "dialects/Vec/IR/VecDialect.h"

namespace cortiq::codegen {

using mlir::Value;

/// An address: a pointer value and a constant displacement in bytes.
struct Address {
  Value base;
  int64_t disp = 0;

  Address operator+(int64_t bytes) const { return {base, disp + bytes}; }
};

class Emit {
public:
  /// Emits at `builder`'s insertion point, which must be inside a vec.kernel; constants go to `constants`' start.
  /// `lanes` is the number of 32-bit lanes of the target's vectors (4, 8 or 16).
  /// `byte_tables`: whether there are lookup64, lookup128 and bit_fields. `signed_levels`: whether signed_dot4 is as
  /// good as dot4, so that levels need no zero point. `quick_gathers`: whether sixteen lanes are gathered sooner than
  /// eight lookups of 128 bytes are done.
  Emit(mlir::OpBuilder& builder, mlir::Location loc, mlir::Block* constants, unsigned lanes, bool byte_tables,
       bool signed_levels, bool quick_gathers);

  unsigned lanes() const { return lanes_; }
  bool byte_tables() const { return byte_tables_; }
  bool signed_levels() const { return signed_levels_; }
  bool quick_gathers() const { return quick_gathers_; }
  /// Bytes of a whole vector.
  unsigned vector_bytes() const { return lanes_ * 4; }

  mlir::VectorType f32() { return vector(b_.getF32Type()); }
  mlir::VectorType i32() { return vector(b_.getI32Type()); }
  mlir::VectorType i16() { return mlir::VectorType::get({lanes_ * 2}, b_.getI16Type()); }
  mlir::VectorType i8() { return mlir::VectorType::get({lanes_ * 4}, b_.getI8Type()); }
  /// One narrow element a 32-bit lane, for loads that feed a conversion.
  mlir::VectorType narrow(mlir::Type element) { return vector(element); }
  mlir::Type f16_type() { return b_.getF16Type(); }
  mlir::Type bf16_type() { return b_.getBF16Type(); }
  mlir::Type i8_type() { return b_.getI8Type(); }
  mlir::Type i16_type() { return b_.getI16Type(); }

  // Constants.
  Value splat_i8(int value);
  Value splat_i32(int32_t value);
  Value splat_f32(float value);
  /// A vector whose lane l holds values[l].
  Value lanes_i32(const std::vector<int32_t>& values);
  /// 16 bytes, repeated in every 128-bit part: a table for lookup16.
  Value table16(const std::vector<int8_t>& values);
  /// A vector of these bytes, repeated until it is full.
  Value bytes(const std::vector<uint8_t>& values);
  Value index(int64_t value);
  /// The address of these numbers beside the code.
  Value table(std::span<const uint64_t> entries);
  Value table(std::span<const uint32_t> entries);

  // Memory. `lanes` > 0 touches only the first so many lanes.
  Value load_ptr(Value pointer, int64_t disp);
  Value load_index(Value pointer, int64_t disp);
  Value read_index(Address a); ///< 32 bits, unsigned
  Value load(mlir::VectorType type, Address a, unsigned lanes = 0);
  void store(Value v, Address a, unsigned lanes = 0);
  Value load_splat_f32(Address a);
  Value load_splat_i32(Address a);
  Value load_repeated(Address a); ///< 16 bytes, in every 128-bit part
  Value gather_f32(Address a, Value index_i32, int scale);
  Value gather_i32(Address a, Value index_i32, int scale);
  void prefetch(Address a, bool near = false); ///< into the second-level cache, or the first

  // Tiles, by number; strides in bytes.
  void tile_config(const std::vector<int64_t>& rows, const std::vector<int64_t>& bytes);
  void tile_release();
  void tile_zero(unsigned tile);
  void tile_load(unsigned tile, Address a, int64_t stride);
  void tile_store(unsigned tile, Address a, int64_t stride);
  void tile_dot(unsigned acc, unsigned lhs, unsigned rhs);
  void tile_dot_bf16(unsigned acc, unsigned lhs, unsigned rhs);

  // Addresses.
  Value offset(Value pointer, int64_t bytes);
  Value offset(Value pointer, Value index, int64_t scale);

  // Arithmetic; element types decide between integer and float forms.
  Value bitcast(Value v, mlir::VectorType type);
  Value bit_and(Value a, Value b);
  Value bit_or(Value a, Value b);
  Value bit_xor(Value a, Value b);
  Value bit_and_not(Value a, Value b); ///< ~a & b
  Value shl(Value v, unsigned bits);
  Value shr_u(Value v, unsigned bits);
  Value shr_s(Value v, unsigned bits);
  Value shr_v(Value v, Value amounts);                                  ///< each lane by its own amount
  Value select_bits(Value word, uint32_t bits, Value set, Value clear); ///< where the word has one of `bits`
  Value mul_bits(Value word, uint32_t bits, Value value, Value factor); ///< the other lanes stay as they are
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value fma(Value a, Value b, Value c); ///< a * b + c
  Value abs(Value v);
  Value sign(Value x, Value w); ///< x * sign(w), bytes
  Value lookup16(Value table, Value index);
  Value lookup64(Value table, Value index);
  Value lookup128(Value low, Value high, Value index);
  Value select_negative(Value signs, Value negative, Value other);
  Value blend_bits(Value mask, Value ones, Value zeros);
  Value bit_fields(Value first, Value value);
  Value dot2(Value unsigned_bytes, Value signed_bytes, unsigned umax, unsigned xmax = 127);
  Value pair_add(Value pairs);
  Value mul_pairs(Value a, Value b); ///< i16 products, summed in pairs to i32
  Value dot4(Value acc, Value unsigned_bytes, Value signed_bytes, unsigned umax);
  Value signed_dot4(Value acc, Value signed_bytes, Value codes);
  Value dot8_pairs(Value acc, Value lhs, Value rhs); ///< two rows of eight bytes times two rows, 128 bits
  /// Lanes of `bytes` bytes of both lower halves, or both upper ones, in turn.
  Value interleave(Value a, Value b, unsigned bytes, bool high);
  Value reduce_add(Value v);              ///< the sum of all lanes, in every lane
  Value to_i32(Value v);                  ///< f32 lanes, to the nearest, halves to even
  Value to_f32(Value v);                  ///< i32, f16 or bf16 lanes
  Value half_bits_to_f32(Value bits);     ///< f16 in the low half of 32-bit lanes, exactly; NaN becomes infinity
  Value widen_unsigned(Value v);          ///< i8 or i16 lanes to i32
  Value pack_bf16(Value low, Value high); ///< f32 lanes of both as bf16, one behind the other
  Value fmax(Value a, Value b);
  Value fmin(Value a, Value b);

  /// A counted loop from lo to hi; the body gets the counter and the carried values and returns the next ones.
  std::vector<Value> loop(Value lo, Value hi, int64_t step, const std::vector<Value>& init,
                          const std::function<std::vector<Value>(Value, const std::vector<Value>&)>& body);

private:
  mlir::VectorType vector(mlir::Type element) { return mlir::VectorType::get({lanes_}, element); }
  Value constant(mlir::DenseElementsAttr value);
  Value table(mlir::DenseElementsAttr entries);

  mlir::OpBuilder& b_;
  mlir::Location loc_;
  mlir::Block* constants_;
  unsigned lanes_;
  bool byte_tables_, signed_levels_, quick_gathers_;
  std::map<const void*, Value> constant_cache_;
  std::map<int64_t, Value> index_cache_;
};

} // namespace cortiq::codegen
