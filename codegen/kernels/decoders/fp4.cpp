// Decoders of the four-bit floats. A byte shuffle turns codes into twice the e2m1 values, moved up by 16 so that they
// are unsigned where products need it (a zero point costs a span what a sign costs each step); half of the block scale
// goes with them.
//   mxfp4        scale 2^(k - 127), k = 0 the subnormal 2^-127; 255 is NaN, and infinite here: both spoil the row alike
//   mxfp4_ggml   the same for every k, 255 included
//   nvfp4        an unsigned e4m3 scale for 16 weights, bit 7 ignored, 0x7f (but not 0xff) is 0

#include "codegen/kernels/decoders/decoders.h"
#include "codegen/kernels/decoders/nibbles.h"

namespace cortiq::codegen {
namespace {

constexpr unsigned kZeroPoint = 16, kLargest = 12;

std::vector<int8_t> e2m1(const Emit& e) {
  std::vector<int8_t> levels = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (int8_t& level : levels)
    level += e.signed_levels() ? 0 : kZeroPoint;
  return levels;
}

/// Geometry of levels by e2m1().
Geometry e2m1_geometry(const Emit& e) {
  Geometry g;
  g.is_signed = e.signed_levels();
  g.zero_point = g.is_signed ? 0 : kZeroPoint;
  g.umax = kLargest + g.zero_point;
  return g;
}

class Mxfp4Decoder final : public NibbleHalves {
public:
  Mxfp4Decoder(Emit& e, const KernelSpec& spec, formats::R16Format format)
      : NibbleHalves(e, spec, std::move(format)), ggml_(spec.codec == formats::CodecId::kMXFP4_GGML) {}

  Geometry geometry() const override { return e2m1_geometry(e_); }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return e_.lookup16(e_.table16(e2m1(e_)), nibbles(r, v, step));
  }
  Value scale(const Record& r, unsigned v, unsigned) override {
    Value k = e_.widen_unsigned(e_.load(e_.narrow(e_.i8_type()), unit(r.at, format_.field("e"), 0, v)));
    Value power = e_.fmax(e_.bitcast(e_.shl(k, 23), e_.f32()), e_.splat_f32(0x1p-127f));
    Value half = e_.mul(power, e_.splat_f32(0.5f));
    return ggml_ ? e_.fmin(half, e_.splat_f32(0x1p127f)) : half; // 255 has become infinity
  }

private:
  bool ggml_;
};

class Nvfp4Decoder final : public Decoder {
public:
  using Decoder::Decoder;

  Geometry geometry() const override {
    Geometry g = e2m1_geometry(e_);
    g.block = 64;
    g.span = 16;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    const unsigned sub = step / 4, part = step % 4; // dword 2*sub + part % 2, high nibbles for the second half
    Value bytes = load_bytes(r.at, format_.field("qs"), 2 * sub + part % 2, v);
    if (part >= 2)
      bytes = e_.bitcast(e_.shr_u(e_.bitcast(bytes, e_.i16()), 4), e_.i8());
    return e_.lookup16(e_.table16(e2m1(e_)), e_.bit_and(bytes, e_.splat_i8(0x0f)));
  }
  Value scale(const Record& r, unsigned v, unsigned span) override {
    Value word = load_words(r.at, format_.field("d"), 0, v);
    Value byte = e_.bit_and(span ? e_.shr_u(word, 8 * span) : word, e_.splat_i32(0xff));
    Value one = e_.splat_i32(1);
    // 1 for 0x7f alone: adding one carries into bit 7, and bit 7 was clear.
    Value is_zero = e_.bit_and(e_.shr_u(e_.add(byte, one), 7), e_.bit_xor(e_.shr_u(byte, 7), one));
    Value keep = e_.sub(is_zero, one); // all ones, or 0 for 0x7f
    Value bits = e_.bit_and(e_.shl(e_.bit_and(byte, e_.splat_i32(0x7f)), 20), keep);
    return e_.mul(e_.bitcast(bits, e_.f32()), e_.splat_f32(0x1p119f)); // rebiased by 2^120, halved
  }
};

} // namespace

std::unique_ptr<Decoder> make_mxfp4_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Mxfp4Decoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_nvfp4_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Nvfp4Decoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
