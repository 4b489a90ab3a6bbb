#pragma once

// What the codebook codecs share: an entry of a grid gives the magnitudes of four or eight neighbouring weights, one a
// byte; sign bits, an eight of them in a byte, say which are negative.
//
// A gather of 32 bits from the grid, which stands beside the code, serves one step of every row. Four sign bits become
// four byte masks by two shuffles: one repeats the sign byte, a mask leaves bit j in byte j, and a table of what is
// not 0 makes all ones of it. Registers: the grid index and the sign bytes of a row vector, while its steps follow
// each other.
//
// Where bytes can be chosen from tables of registers, grids of up to 1024 entries are such tables, packed: two bits a
// weight say which of the few magnitudes it has, so that an entry is one byte for four weights. A lookup then serves 64
// entries at once, fields of bits bring the packed weights into bytes, the sign's bit beside them, and a last lookup
// makes levels of them.

#include <array>

#include "codegen/kernels/decoder.h"

namespace cortiq::codegen {

class Codebook : public Decoder {
public:
  using Decoder::Decoder;

protected:
  /// A value that the steps of one dword, byte or group share: made for the first of them, kept for those that follow.
  class Kept {
  public:
    template <class Make>
    const Value& get(const Record& record, unsigned number, Make make) {
      if (!value_ || base_ != record.at.base || disp_ != record.at.disp || number_ != number) {
        value_ = make();
        base_ = record.at.base;
        disp_ = record.at.disp;
        number_ = number;
      }
      return value_;
    }

  private:
    Value value_, base_;
    int64_t disp_ = 0;
    unsigned number_ = 0;
  };
  using KeptRows = std::array<Kept, 4>; // one a row vector

  /// Bits from..from + width - 1 of each lane, moved to bit `to`.
  Value bits(Value word, unsigned from, unsigned width, unsigned to = 0) {
    if (from > to)
      word = e_.shr_u(word, from - to);
    else if (from < to)
      word = e_.shl(word, to - from);
    const bool clean = from + width == 32 && to == 0;
    return clean ? word : e_.bit_and(word, e_.splat_i32(int32_t(((1u << width) - 1) << to)));
  }

  /// Four levels of every row: half `half` of the eight of an entry, or an entry of four.
  Value grid8(Value grid, Value index, unsigned half) {
    return e_.bitcast(e_.gather_i32({grid, 4 * int64_t(half)}, index, 8), e_.i8());
  }
  Value grid4(Value grid, Value index) { return e_.bitcast(e_.gather_i32({grid, 0}, index, 4), e_.i8()); }

  /// A dword's four 7-bit sign indices, from bit 0 on, as sign bytes.
  Value spread_sign_indices(Value word);
  /// Bit 7 of each byte, which is clear, set where the number of set bits is odd.
  Value with_parity(Value bytes);

  /// `magnitudes`, negative where bit j of nibble `half` of byte `byte` of the lane's `signs` is set.
  Value negated(Value magnitudes, Value signs, unsigned byte, unsigned half);

  /// Bit start + stride * j of each lane, at bit `to` of byte j; what follows it in the lane stands above it.
  Value fields(Value word, unsigned start, unsigned stride, unsigned to);
  /// table[index] for indices of bytes; bit 7 of the bytes of high[i] is bit 8 + i of the index.
  Value lookup_bytes(const std::vector<uint8_t>& table, Value index, const std::vector<Value>& high);
  /// table[index], of a power of two of at most 64 entries, by the lowest bits of bytes.
  Value lookup_low_bits(const std::vector<uint8_t>& table, Value index) { return e_.lookup64(e_.bytes(table), index); }

  /// d * (offset + n * factor), products of few enough bits to be exact.
  Value sub_scale(Value d, Value n, float factor, float offset) {
    return e_.mul(d, e_.fma(e_.to_f32(n), e_.splat_f32(factor), e_.splat_f32(offset)));
  }

  static Geometry codebook(unsigned span, unsigned umax) {
    Geometry g;
    g.block = 256;
    g.span = span;
    g.is_signed = true;
    g.umax = umax;
    return g;
  }
};

} // namespace cortiq::codegen
