// Decoder of iq4_nl: w = d * L[q], L a table of 16 signed levels; nibbles as halves. A byte shuffle turns codes into
// levels.

#include "codegen/kernels/decoders/decoders.h"
#include "codegen/kernels/decoders/nibbles.h"

namespace cortiq::codegen {
namespace {

const std::vector<int8_t> kLevels = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

class Iq4NlDecoder final : public NibbleHalves {
public:
  using NibbleHalves::NibbleHalves;

  Geometry geometry() const override {
    Geometry g;
    g.is_signed = true;
    g.umax = 127;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return e_.lookup16(e_.table16(kLevels), nibbles(r, v, step));
  }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }
};

class Iq4XsDecoder final : public NibbleHalves {
public:
  using NibbleHalves::NibbleHalves;

  Geometry geometry() const override {
    Geometry g;
    g.block = 256;
    g.is_signed = true;
    g.umax = 127;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return e_.lookup16(e_.table16(kLevels), nibbles(r, v, step % 8, step / 8 * 4));
  }
  Value scale(const Record& r, unsigned v, unsigned g) override {
    Value low = load_words(r.at, format_.field("sl"), 0, v);
    low = e_.bit_and(g ? e_.shr_u(low, 4 * g) : low, e_.splat_i32(15));
    Value high = e_.widen_unsigned(e_.load(e_.narrow(e_.i16_type()), unit(r.at, format_.field("sh"), 0, v)));
    high = e_.shl(e_.bit_and(g ? e_.shr_u(high, 2 * g) : high, e_.splat_i32(3)), 4);
    Value sc = e_.sub(e_.bit_or(low, high), e_.splat_i32(32));
    return e_.mul(load_f16(r.at, format_.field("d"), 0, v), e_.to_f32(sc));
  }
};

} // namespace

std::unique_ptr<Decoder> make_iq4_xs_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Iq4XsDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_iq4_nl_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Iq4NlDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
