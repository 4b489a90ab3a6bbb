// Decoders of the K-quants: records of 256 weights in sub-blocks with small integer scales.
//   q4_k   w = (d * sc) * q - dmin * m     sub-blocks of 32; sc and m of 6 bits, packed in 12 bytes
//   q5_k   the same with a fifth bit a weight, bit s of byte l of "qh" for weight l of sub-block s
//   q6_k   w = (d * sc) * (q - 32)         sub-blocks of 16; sc int8
//   q2_k   w = (d * sc) * q - dmin * m     sub-blocks of 16; sc and m the nibbles of a byte
//   q3_k   w = (d * (sc - 32)) * (q - 4)   sub-blocks of 16; sc of 6 bits, q of two bits and one
// Scales are unpacked from 32-bit units, a row a lane. What the sub-blocks of a record share (d and dmin as f32, the
// 6-bit numbers that are in two parts as bytes) is unpacked once. With 16 registers it is put down in scratch, which
// costs a load where a register held over 256 weights would cost another value its own:
//   scratch[v][shared][lane]

#include "codegen/kernels/decoders/bit_fields.h"
#include "codegen/kernels/decoders/decoders.h"
#include "codegen/kernels/decoders/record_scratch.h"

namespace cortiq::codegen {
namespace {

/// The bits of `mask` from bit `shift` of each 32-bit lane on.
Value bits_of(Emit& e, Value word, unsigned shift, int32_t mask) {
  return e.bit_and(shift ? e.shr_u(word, shift) : word, e.splat_i32(mask));
}

/// The same f32 lanes with the other sign.
Value negated(Emit& e, Value v) {
  return e.bitcast(e.bit_xor(e.bitcast(v, e.i32()), e.splat_i32(INT32_MIN)), e.f32());
}

/// d times byte number `byte` of each lane, which is signed.
Value scaled_byte(Emit& e, Value word, unsigned byte, Value d) {
  if (byte != 3)
    word = e.shl(word, 24 - 8 * byte);
  return e.mul(e.to_f32(e.shr_s(word, 24)), d);
}

class Q4KDecoder : public Decoder {
public:
  using Decoder::Decoder;

  Geometry geometry() const override {
    Geometry g;
    g.block = 256;
    g.umax = 15;
    g.has_min = true;
    return g;
  }

  Value levels(const Record& r, unsigned v, unsigned step) override {
    const unsigned sub = step / 8, l = step % 8; // weight 4*l of sub-block `sub`
    Value bytes = load_bytes(r.at, format_.field("qs"), 8 * (sub / 2) + l, v);
    if (sub % 2)
      bytes = e_.bitcast(e_.shr_u(e_.bitcast(bytes, e_.i16()), 4), e_.i8());
    return e_.bit_and(bytes, e_.splat_i8(0x0f));
  }

  void begin_group(Address, Address scratch, unsigned) override { shared_.set(scratch); }
  void begin_record(const Record& r, unsigned vectors) override {
    const auto& field = format_.field("scales");
    Value six = e_.splat_i8(0x3f), four = e_.splat_i8(0x0f);
    for (unsigned v = 0; v < vectors; ++v) {
      // Numbers 0..3 are the low six bits of the bytes of their word; of 4..7 the low four bits are a nibble of word 2,
      // the high two the top bits of the bytes of their word.
      Value high = load_words(r.at, field, 2, v);
      for (unsigned which : {kScales, kMinima}) {
        Value bytes = load_bytes(r.at, field, which, v);
        Value low = e_.bit_and(e_.bitcast(which == kScales ? high : e_.shr_u(high, 4), e_.i8()), four);
        Value top = e_.shr_u(e_.bitcast(e_.bit_and_not(six, bytes), e_.i32()), 2);
        shared_.put(e_, v, which, e_.bit_or(e_.bitcast(low, e_.i32()), top));
      }
      shared_.put(e_, v, kD, load_f16(r.at, format_.field("d"), 0, v));
      shared_.put(e_, v, kDmin, negated(e_, load_f16(r.at, format_.field("dmin"), 0, v)));
    }
  }

  Value scale(const Record& r, unsigned v, unsigned s) override {
    return e_.mul(e_.to_f32(number(r, v, s, kScales)), shared_.f32(e_, v, kD));
  }
  Value minimum(const Record& r, unsigned v, unsigned s) override {
    return e_.mul(e_.to_f32(number(r, v, s, kMinima)), shared_.f32(e_, v, kDmin));
  }
  bool has_integer_scales() const override { return true; }
  Value integer_scale(const Record& r, unsigned v, unsigned s) override { return number(r, v, s, kScales); }
  Value integer_minimum(const Record& r, unsigned v, unsigned s) override { return number(r, v, s, kMinima); }
  Value record_scale(const Record&, unsigned v) override { return shared_.f32(e_, v, kD); }
  Value record_minimum(const Record&, unsigned v) override { return shared_.f32(e_, v, kDmin); }

private:
  /// Of the numbers those of sub-blocks 4..7; the others are read where they stand.
  enum Shared : unsigned { kScales, kMinima, kD, kDmin };

  /// Six-bit number of sub-block s.
  Value number(const Record& r, unsigned v, unsigned s, unsigned which) {
    const unsigned shift = 8 * (s % 4);
    if (s < 4)
      return bits_of(e_, load_words(r.at, format_.field("scales"), which, v), shift, 0x3f);
    Value word = shared_.i32(e_, v, which);
    return s == 7 ? e_.shr_u(word, shift) : bits_of(e_, word, shift, 0xff);
  }

  RecordScratch shared_;
};

class Q5KDecoder final : public Q4KDecoder {
public:
  using Q4KDecoder::Q4KDecoder;

  Geometry geometry() const override {
    Geometry g = Q4KDecoder::geometry();
    g.umax = 31;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    const unsigned sub = step / 8, l = step % 8;
    Value bits = load_words(r.at, format_.field("qh"), l, v);
    if (sub < 4)
      bits = e_.shl(bits, 4 - sub);
    else if (sub > 4)
      bits = e_.shr_u(bits, sub - 4);
    return e_.bit_or(Q4KDecoder::levels(r, v, step), e_.bit_and(e_.bitcast(bits, e_.i8()), e_.splat_i8(0x10)));
  }
};

class Q6KDecoder final : public Decoder {
public:
  using Decoder::Decoder;

  Geometry geometry() const override {
    Geometry g;
    g.block = 256;
    g.span = 16;
    g.umax = 63;
    g.zero_point = 32;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    const unsigned half = step / 32, j = step % 32 / 8, l = step % 8;
    Value low = load_bytes(r.at, format_.field("ql"), 16 * half + 8 * (j % 2) + l, v);
    if (j / 2)
      low = e_.bitcast(e_.shr_u(e_.bitcast(low, e_.i16()), 4), e_.i8());
    low = e_.bit_and(low, e_.splat_i8(0x0f));
    Value high = load_words(r.at, format_.field("qh"), 8 * half + l, v);
    if (j < 2)
      high = e_.shl(high, 4 - 2 * j);
    else if (j > 2)
      high = e_.shr_u(high, 2);
    return e_.bit_or(low, e_.bit_and(e_.bitcast(high, e_.i8()), e_.splat_i8(0x30)));
  }
  void begin_group(Address, Address scratch, unsigned) override { shared_.set(scratch); }
  void begin_record(const Record& r, unsigned vectors) override {
    for (unsigned v = 0; v < vectors; ++v)
      shared_.put(e_, v, 0, load_f16(r.at, format_.field("d"), 0, v));
  }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    return scaled_byte(e_, load_words(r.at, format_.field("scales"), s / 4, v), s % 4, shared_.f32(e_, v, 0));
  }

private:
  RecordScratch shared_;
};

class Q2KDecoder final : public BitFields {
public:
  using BitFields::BitFields;

  Geometry geometry() const override {
    Geometry g;
    g.block = 256;
    g.span = 16;
    g.umax = 3;
    g.has_min = true;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return codes(r, format_.field("qs"), v, step, 2);
  }
  void begin_group(Address, Address scratch, unsigned) override { shared_.set(scratch); }
  void begin_record(const Record& r, unsigned vectors) override {
    for (unsigned v = 0; v < vectors; ++v) {
      shared_.put(e_, v, kD, load_f16(r.at, format_.field("d"), 0, v));
      shared_.put(e_, v, kDmin, negated(e_, load_f16(r.at, format_.field("dmin"), 0, v)));
    }
  }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    return e_.mul(e_.to_f32(nibble(r, v, s, 0)), shared_.f32(e_, v, kD));
  }
  Value minimum(const Record& r, unsigned v, unsigned s) override {
    return e_.mul(e_.to_f32(nibble(r, v, s, 4)), shared_.f32(e_, v, kDmin));
  }

private:
  enum Shared : unsigned { kD, kDmin };

  Value nibble(const Record& r, unsigned v, unsigned s, unsigned from) {
    Value word = load_words(r.at, format_.field("scales"), s / 4, v);
    return bits_of(e_, word, 8 * (s % 4) + from, 15);
  }

  RecordScratch shared_;
};

class Q3KDecoder final : public BitFields {
public:
  using BitFields::BitFields;

  Geometry geometry() const override {
    Geometry g;
    g.block = 256;
    g.span = 16;
    g.umax = 7;
    g.zero_point = 4;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return e_.bit_or(codes(r, format_.field("qs"), v, step, 2), codes(r, format_.field("qh"), v, step, 1, 2));
  }
  void begin_group(Address, Address scratch, unsigned) override { shared_.set(scratch); }
  /// Scale s is byte s % 4 of word s / 4: four bits of it in words 0 and 1, two in word 2.
  void begin_record(const Record& r, unsigned vectors) override {
    const formats::LayoutField& scales = format_.field("scales");
    for (unsigned v = 0; v < vectors; ++v) {
      Value top = load_words(r.at, scales, 2, v);
      for (unsigned t = 0; t < 4; ++t) {
        Value low = bits_of(e_, load_words(r.at, scales, t % 2, v), 4 * (t / 2), 0x0f0f0f0f);
        Value high = e_.bit_and(t < 2    ? e_.shl(top, 4 - 2 * t)
                                : t == 2 ? top
                                         : e_.shr_u(top, 2),
                                e_.splat_i32(0x30303030));
        Value bytes = e_.bitcast(e_.bit_or(low, high), e_.i8());
        shared_.put(e_, v, t, e_.bitcast(e_.sub(bytes, e_.splat_i8(32)), e_.i32()));
      }
      shared_.put(e_, v, kD, load_f16(r.at, format_.field("d"), 0, v));
    }
  }
  Value scale(const Record&, unsigned v, unsigned s) override {
    return scaled_byte(e_, shared_.i32(e_, v, s / 4), s % 4, shared_.f32(e_, v, kD));
  }

private:
  static constexpr unsigned kD = 4; ///< behind the four words of scales

  RecordScratch shared_;
};

} // namespace

std::unique_ptr<Decoder> make_q2_k_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q2KDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_q3_k_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q3KDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_q4_k_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q4KDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_q5_k_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q5KDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_q6_k_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q6KDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
