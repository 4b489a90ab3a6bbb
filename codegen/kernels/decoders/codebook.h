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
//
// For one token codes are arranged anew instead (turned_order): what a lookup gives holds weights 0..3 of four
// different entries, and a step takes weight i of each of the four, where they stand. Six bits tell two weights with
// their signs, so that steps share what brings bits together:
//
//   entry bytes    c2 | c3 << 2 | c0 << 4 | c1 << 6, codes of two bits
//   sign bytes     s0 << 2 | s1 << 3 | s2 << 4 | s3 << 5
//   weights 2, 3   by bits 0..3 of the entry, 4..5 of the signs
//   weights 0, 1   by bits 4..7 of the entry, 2..3 of the signs, moved down by two

#include <array>

#include "codegen/kernels/decoder.h"
#include "codegen/kernels/decoders/kept.h"

namespace cortiq::codegen {

class Codebook : public Decoder {
public:
  using Decoder::Decoder;

protected:
  /// Grid indices of four entries as lookup_bytes() wants them: their low bytes, and what is above at bit 7 of bytes.
  struct Indices {
    Value low;
    std::vector<Value> high;
    explicit operator bool() const { return bool(low); }
  };
  using KeptIndices = std::array<Kept<Indices>, 4>;

  /// The record's d; kept over its spans where registers allow for it.
  Value record_d(const Record& r, unsigned v) {
    const auto load = [&] { return load_f16(r.at, format_.field("d"), 0, v); };
    return turned_ ? record_d_[v].get(r, 0, load) : load();
  }

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

  /// Bit start[j] of each lane, at bit `to` of byte j.
  Value fields_at(Value word, const std::array<unsigned, 4>& start, unsigned to);
  /// 7-bit sign indices in the lower bits of bytes, as sign bytes; only where there are tables of bytes.
  Value signs_by_index(Value index);
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

  /// Which halves of a group's four eights the turned steps take together. Those of codecs with a scale for 16 weights
  /// take halves of two eights, first and second ones in every other `width` bits; with a width of 0 they take the
  /// first halves of all four, then the second ones. An order as turned_order() gives it.
  static std::vector<uint8_t> order_of_halves(unsigned width);
  /// The entries of steps 4 * part.. of a group, from its first and its second halves.
  Value turned_part(Value first, Value second, unsigned part, unsigned width);
  /// The same by gathers of two entries, in whose words the halves, numbers of eight bits, stand `width` bits apart.
  Value gathered_part(const std::vector<uint8_t>& first, const std::vector<uint8_t>& second, unsigned width,
                      Value entry, Value next_entry);
  /// An entry of four codes as the turned steps want it.
  static uint8_t turned_entry(const std::array<uint8_t, 4>& code) {
    return uint8_t(code[2] | code[3] << 2 | code[0] << 4 | code[1] << 6);
  }
  /// Six bits of two weights, the first or the second two, in bytes.
  Value two_weights(Value entries, Value signs, unsigned second) {
    if (second)
      return e_.blend_bits(e_.splat_i8(0x30), signs, entries);
    Value both = e_.blend_bits(e_.splat_i8(0x0c), signs, entries);
    return e_.bitcast(e_.shr_u(e_.bitcast(both, e_.i32()), 2), e_.i8());
  }
  /// Levels of weight i of entries by those six bits: `level` of code and sign, plus `raised`.
  template <class Level>
  Value level_of(Value two, unsigned i, uint8_t raised, Level level) {
    std::vector<uint8_t> table;
    for (unsigned bits = 0; bits < 64; ++bits) {
      const unsigned code = bits >> (i < 2 ? 2 + 2 * i : 2 * (i - 2)) & 3;
      const unsigned sign = bits >> (i < 2 ? i : 2 + i) & 1;
      table.push_back(uint8_t(raised + level(code, sign)));
    }
    return lookup_low_bits(table, two);
  }
  /// Of each lane's bytes those of the lower `width` bits of every 2 * width from `low`, the upper ones from `high`.
  Value low_and_high(Value low, Value high, unsigned width) {
    return e_.blend_bits(e_.splat_i32(width == 8 ? 0x00ff00ff : 0x0000ffff), e_.bitcast(low, e_.i32()),
                         e_.bitcast(high, e_.i32()));
  }

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

private:
  /// The same of `count` entries, a power of two, from `first` on.
  Value lookup_part(const std::vector<uint8_t>& table, Value index, const std::vector<Value>& high, size_t first,
                    size_t count);

  KeptRows record_d_;
};

} // namespace cortiq::codegen
