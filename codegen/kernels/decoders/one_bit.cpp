// Decoders of the sign codecs: w = bit ? +d : -d.
//   q1 (32 weights a scale), q1g, q1_0 (128)
// The level is 2 * bit with zero point 1.

#include "codegen/kernels/decoders/bit_fields.h"
#include "codegen/kernels/decoders/decoders.h"

namespace cortiq::codegen {
namespace {

class OneBitDecoder final : public BitFields {
public:
  using BitFields::BitFields;

  Geometry geometry() const override {
    Geometry g;
    g.block = format_.block;
    g.umax = 2;
    g.zero_point = 1;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return codes(r, format_.field("qs"), v, step, 1, 1);
  }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }
};

} // namespace

std::unique_ptr<Decoder> make_one_bit_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<OneBitDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
