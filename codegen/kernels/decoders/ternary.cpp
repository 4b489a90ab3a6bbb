// Decoders of the ternary codecs with five base-3 digits a byte: w = (digit - 1) * d.
//   tq1_0 (256 weights a record), ptq1_0 (128), q1t (32)
// Digit s of byte j of dword u belongs to weight 20u + 4s + j; what the dwords leave is in bytes "qr", digit s of byte
// k for weight 4k + s. Digit n of byte b (GGUF specification 5): digit(b, n) = (((b * 3^n) mod 256) * 3) >> 8, here on
// the even and odd bytes of 16-bit lanes.

#include <array>

#include "codegen/kernels/decoders/decoders.h"

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
      return digits(load_words(r.at, qs, step / kDigits, v), step % kDigits);
    return rest(r, v, step - in_dwords);
  }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }
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

  Value i16_splat(int value) { return e_.bitcast(e_.splat_i32(value << 16 | value), e_.i16()); }

  /// Digit n of all four bytes.
  Value digits(Value word, unsigned n) {
    Value pairs = e_.bitcast(word, e_.i16());
    Value low = i16_splat(0xff);
    auto digit = [&](Value byte) {
      if (n > 0)
        byte = e_.bit_and(e_.mul(byte, i16_splat(kPowers[n])), low);
      return e_.shr_u(e_.mul(byte, i16_splat(3)), 8);
    };
    Value even = digit(e_.bit_and(pairs, low)), odd = digit(e_.shr_u(pairs, 8));
    return e_.bitcast(e_.bit_or(even, e_.shl(odd, 8)), e_.i8());
  }

  /// Weights 4k..4k+3 behind the dwords: the first four digits of byte k of "qr".
  Value rest(const Record& r, unsigned v, unsigned k) {
    Value byte = e_.widen_unsigned(e_.load(e_.narrow(e_.i8_type()), unit(r.at, format_.field("qr"), k, v)));
    Value four;
    for (unsigned n = 0; n < 4; ++n) {
      Value power = n ? e_.bit_and(e_.mul(byte, e_.splat_i32(kPowers[n])), e_.splat_i32(0xff)) : byte;
      Value digit = e_.shr_u(e_.mul(power, e_.splat_i32(3)), 8);
      four = four ? e_.bit_or(four, e_.shl(digit, 8 * n)) : digit;
    }
    return e_.bitcast(four, e_.i8());
  }
};

} // namespace

std::unique_ptr<Decoder> make_ternary_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<TernaryDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
