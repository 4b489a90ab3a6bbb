// Decoders of q5_0 (w = (q - 16) * d) and q5_1 (w = q * d + m): nibbles as halves, and a word of fifth bits a row in
// which bit 8*j + s belongs to weight 4*s + j, so that one shift and one mask give the fifth bits of step s.

#include "codegen/kernels/decoders/decoders.h"
#include "codegen/kernels/decoders/nibbles.h"

namespace cortiq::codegen {
namespace {

class Q5Decoder final : public NibbleHalves {
public:
  Q5Decoder(Emit& e, const KernelSpec& spec, formats::R16Format format, bool has_min)
      : NibbleHalves(e, spec, std::move(format)), has_min_(has_min) {}

  Geometry geometry() const override {
    Geometry g;
    g.umax = 31;
    g.zero_point = has_min_ ? 0 : 16;
    g.has_min = has_min_;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    Value low = nibbles(r, v, step);
    Value bits = load_words(r.at, format_.field("qh"), 0, v);
    if (step < 4)
      bits = e_.shl(bits, 4 - step);
    else if (step > 4)
      bits = e_.shr_u(bits, step - 4);
    return e_.bit_or(low, e_.bit_and(e_.bitcast(bits, e_.i8()), e_.splat_i8(0x10)));
  }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }
  Value minimum(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("m"), 0, v); }

private:
  bool has_min_;
};

} // namespace

std::unique_ptr<Decoder> make_q5_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q5Decoder>(e, spec, std::move(format), spec.codec == formats::CodecId::kQ5_1);
}

} // namespace cortiq::codegen
