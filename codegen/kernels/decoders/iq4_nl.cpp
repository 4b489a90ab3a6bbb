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

} // namespace

std::unique_ptr<Decoder> make_iq4_nl_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Iq4NlDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
