// Decoder of iq4_nl: w = d * L[q], L a table of 16 signed levels; nibbles as halves. A byte shuffle turns codes into
// levels.

#include <cmath>

#include "codegen/kernels/decoders/decoders.h"
#include "codegen/kernels/decoders/nibbles.h"
#include "codegen/kernels/decoders/record_scratch.h"

namespace cortiq::codegen {
namespace {

const std::vector<int8_t> kLevels = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

std::vector<int8_t> raised_levels_table() {
  std::vector<int8_t> raised;
  for (int level : kLevels)
    raised.push_back(int8_t(level + 128 - 256 * (level >= 0)));
  return raised;
}

class Iq4NlDecoder : public NibbleHalves {
public:
  using NibbleHalves::NibbleHalves;

  Geometry geometry() const override {
    Geometry g;
    g.is_signed = true;
    g.umax = 127;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) final { return by_low_nibbles(kLevels, codes(r, v, step)); }
  Value raised_levels(const Record& r, unsigned v, unsigned step) final {
    return by_low_nibbles(raised_levels_table(), codes(r, v, step));
  }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }

protected:
  /// In the low nibbles of bytes.
  virtual Value codes(const Record& r, unsigned v, unsigned step) { return nibbles_below(r, v, step); }
};

class Iq4XsDecoder final : public Iq4NlDecoder {
public:
  using Iq4NlDecoder::Iq4NlDecoder;

  Geometry geometry() const override {
    Geometry g = Iq4NlDecoder::geometry();
    g.block = 256;
    return g;
  }
  void begin_group(Address, Address scratch, unsigned) override { shared_.set(scratch); }
  void begin_record(const Record& r, unsigned vectors) override {
    for (unsigned v = 0; v < vectors; ++v) {
      Value d = load_f16(r.at, format_.field("d"), 0, v);
      for (unsigned byte = 0; byte < kInMantissa; ++byte)
        shared_.put(e_, v, kD + byte, byte ? e_.mul(d, e_.splat_f32(std::ldexp(1.0f, -8 * int(byte)))) : d);
      Value high = e_.widen_unsigned(e_.load(e_.narrow(e_.i16_type()), unit(r.at, format_.field("sh"), 0, v)));
      Value low = load_words(r.at, format_.field("sl"), 0, v);
      // Nibble n, the upper bits of scales 2n and 2n + 1, to the lower half of byte n.
      high = e_.bit_and(e_.bit_or(high, e_.shl(high, 8)), e_.splat_i32(0x00ff00ff));
      high = e_.bit_or(high, e_.shl(high, 4));
      shared_.put(e_, v, kEven, below(low, e_.shl(high, 4)));
      shared_.put(e_, v, kOdd, below(e_.shr_u(low, 4), e_.shl(high, 2)));
    }
  }
  /// A scale's six bits stay in the byte that they are in, below the exponent of 2^23; d is that much smaller.
  Value scale(const Record&, unsigned v, unsigned g) override {
    constexpr uint32_t kInteger = 0x4b000000; // 2^23 as f32: integers below it are its lowest bits
    const unsigned byte = g / 2 % kInMantissa, shift = 8 * byte;
    Value word = shared_.i32(e_, v, g % 2 ? kOdd : kEven);
    if (g / 2 >= kInMantissa)
      word = e_.shr_u(word, 8 * (g / 2));
    Value mask = e_.splat_i32(0x3f << shift), integer = e_.splat_i32(kInteger);
    Value number = e_.lanes() == 16 ? e_.blend_bits(mask, word, integer) : e_.bit_or(e_.bit_and(word, mask), integer);
    Value sc = e_.sub(e_.bitcast(number, e_.f32()), e_.splat_f32(0x1p23f + float(32 << shift)));
    return e_.mul(sc, shared_.f32(e_, v, kD + byte));
  }

protected:
  Value codes(const Record& r, unsigned v, unsigned step) override {
    return nibbles_below(r, v, step % 8, step / 8 * 4);
  }

private:
  static constexpr unsigned kInMantissa = 3; ///< bytes of a word, of which one may be any, below 2^23
  enum Shared : unsigned { kEven, kOdd, kD };

  /// Low nibbles of bytes, and what is above them from `high`.
  Value below(Value low, Value high) {
    Value mask = e_.splat_i32(0x0f0f0f0f);
    return e_.lanes() == 16 ? e_.blend_bits(mask, low, high)
                            : e_.bit_or(e_.bit_and(low, mask), e_.bit_and_not(mask, high));
  }

  RecordScratch shared_;
};

} // namespace

std::unique_ptr<Decoder> make_iq4_xs_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Iq4XsDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_iq4_nl_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Iq4NlDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
