// Decoders of the ternary codecs with five base-3 digits a byte: w = (digit - 1) * d.
//   tq1_0 (256 weights a record), ptq1_0 (128), q1t (32)
// Digit s of byte j of dword u belongs to weight 20u + 4s + j; what the dwords leave is in bytes "qr", digit s of byte
// k for weight 4k + s. Digit n of byte b (GGUF specification 5): digit(b, n) = (((b * 3^n) mod 256) * 3) >> 8.
//
// Three times a byte, in 16 bits, has its first digit above and what the next digits are of below. So a product by 3, 0
// of pairs of bytes goes from one digit to the next, whatever stands in the upper bytes:
//   even = dot2(even, 3 0)      bytes (rest of 0, digit of 0, rest of 2, digit of 2), from the dword
//   odd  = dot2(odd, 3 0)       the same of bytes 1 and 3, first dot2(dword, 0 3)
//   levels = even >> 8, odd's upper bytes

#include <array>

#include "codegen/kernels/decoders/decoders.h"
#include "codegen/kernels/decoders/kept.h"

namespace cortiq::codegen {
namespace {

constexpr unsigned kDigits = 5;
constexpr int kPowers[kDigits] = {1, 3, 9, 27, 81};

class TernaryDecoder final : public Decoder {
public:
  using Decoder::Decoder;

  Geometry geometry() const override {
    Geometry g;
    g.block = format_.block;
    g.umax = 2;
    g.zero_point = 1;
    return g;
  }

  Value levels(const Record& r, unsigned v, unsigned step) override {
    const formats::LayoutField& qs = format_.field("qs");
    const unsigned in_dwords = qs.count * kDigits;
    if (step < in_dwords)
      return digits(r, v, step / kDigits, step % kDigits);
    return rest(r, v, step - in_dwords);
  }
  Value scale(const Record& r, unsigned v, unsigned) override {
    const auto load = [&] { return load_f16(r.at, format_.field("d"), 0, v); };
    return e_.lanes() == 16 ? d_[v].get(r, 0, load) : load();
  }
  /// Of q1t: 20 weights in a dword of digits, 12 in three bytes.
  Value weight_at(Address group, unsigned v, Value column) override {
    Value record = e_.shr_u(column, 5), place = e_.bit_and(column, e_.splat_i32(31));
    std::array<uint8_t, 32> byte, power;
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned k = i / 4 - kDigits; // byte of "qr", behind the dword
      byte[i] = uint8_t(i < 4 * kDigits ? rows_ * format_.field("qs").offset + i % 4
                                        : rows_ * (format_.field("qr").offset + k));
      power[i] = uint8_t(kPowers[i < 4 * kDigits ? i / 4 : i % 4]);
    }
    Value in_dword = e_.shr_s(e_.sub(place, e_.splat_i32(4 * kDigits)), 31);
    Value row = e_.bit_or(e_.bit_and(in_dword, row_offsets(v, 4)), e_.bit_and_not(in_dword, row_offsets(v, 1)));
    Value low = e_.splat_i32(0xff);
    Value digits = e_.bit_and(gather_bytes(group, record, e_.add(row, lookup32(byte, place))), low);
    Value moved = e_.bit_and(e_.mul(digits, lookup32(power, place)), low);
    Value digit = e_.shr_u(e_.mul(moved, e_.splat_i32(3)), 8);
    Value d = e_.half_bits_to_f32(gather_field(group, record, format_.field("d"), v));
    return e_.mul(e_.to_f32(e_.sub(digit, e_.splat_i32(1))), d);
  }

private:
  /// table[index] in the low byte of each lane, for indices of 0 to 31: two halves, each 0 for the other's indices,
  /// which have bit 7 set in it.
  Value lookup32(const std::array<uint8_t, 32>& table, Value index) {
    auto half = [&](unsigned first) {
      Value place = first ? e_.bit_xor(index, e_.splat_i32(16)) : index;
      Value low_byte = e_.bit_or(e_.add(place, e_.splat_i32(0x70)), e_.splat_i32(int32_t(0x80808000)));
      return e_.lookup16(e_.table16({table.begin() + first, table.begin() + first + 16}),
                         e_.bitcast(low_byte, e_.i8()));
    };
    return e_.bitcast(e_.bit_or(half(0), half(16)), e_.i32());
  }

  /// Three times the even bytes, or the odd ones, in 16 bits.
  Value three_times(Value bytes, bool odd) {
    if (e_.lanes() > 4)
      return e_.bitcast(e_.dot2(bytes, e_.bytes({uint8_t(odd ? 0 : 3), uint8_t(odd ? 3 : 0)}), 255, 3), e_.i8());
    Value pairs = e_.bitcast(bytes, e_.i16()), three = e_.bitcast(e_.splat_i32(0x00030003), e_.i16());
    Value one = odd ? e_.shr_u(pairs, 8) : e_.bit_and(pairs, e_.bitcast(e_.splat_i32(0x00ff00ff), e_.i16()));
    return e_.bitcast(e_.mul(one, three), e_.i8());
  }
  /// Digits of the bytes 0 and 2, and of 1 and 3, which stand above what is left of the bytes.
  Value levels_of(Value even, Value odd) {
    Value upper = e_.splat_i32(int32_t(0xff00ff00u)), low = e_.shr_u(e_.bitcast(even, e_.i16()), 8);
    low = e_.bitcast(low, e_.i32());
    odd = e_.bitcast(odd, e_.i32());
    return e_.bitcast(e_.lanes() == 16 ? e_.blend_bits(upper, odd, low) : e_.bit_or(low, e_.bit_and(odd, upper)),
                      e_.i8());
  }

  /// Digit n of all four bytes of a dword.
  Value digits(const Record& r, unsigned v, unsigned dword, unsigned n) {
    return levels_of(digit(r, v, 0, dword, n), digit(r, v, 1, dword, n));
  }
  /// Digit n of the even or odd bytes above what is left of them; from the digit before it, which a step keeps.
  Value digit(const Record& r, unsigned v, unsigned half, unsigned dword, unsigned n) {
    return digit_[half][v].get(r, dword * kDigits + n, [&] {
      return n != 0 ? three_times(digit(r, v, half, dword, n - 1), false)
                    : three_times(load_bytes(r.at, format_.field("qs"), dword, v), half != 0);
    });
  }

  /// Weights 4k..4k+3 behind the dwords: the first four digits of byte k of "qr". The byte and nine times it begin
  /// with digits 0 and 2, and what is left of them with digits 1 and 3.
  Value rest(const Record& r, unsigned v, unsigned k) {
    Value byte = e_.widen_unsigned(e_.load(e_.narrow(e_.i8_type()), unit(r.at, format_.field("qr"), k, v)));
    Value even = three_times(e_.bitcast(e_.mul(byte, e_.splat_i32(1 | 9 << 16)), e_.i8()), false);
    return levels_of(even, three_times(even, false));
  }

  std::array<KeptRows, 2> digit_;
  KeptRows d_;
};

} // namespace

std::unique_ptr<Decoder> make_ternary_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<TernaryDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
