// Decoders of the codecs with grids of four magnitudes, 32 weights a scale:
//   iq3_xxs   w = +-magnitude * d * (1/2 + n) / 2, 8-bit grid indices, 7-bit sign indices beside the scale
//   iq3_s     w = +-magnitude * d * (1 + 2 n), 9-bit grid indices, sign bytes

#include "codegen/kernels/decoders/codebook.h"
#include "codegen/kernels/decoders/decoders.h"
#include "formats/codec/iq_grids.h"

namespace cortiq::codegen {
namespace {

class IQ3XXSDecoder final : public Codebook {
public:
  using Codebook::Codebook;

  Geometry geometry() const override { return codebook(32, 62); }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    const unsigned group = step / 8;
    Value index = bits(load_words(r.at, format_.field("qs"), step / 4, v), 8 * (step % 4), 8);
    Value signs = signs_[v].get(
        r, group, [&] { return spread_sign_indices(load_words(r.at, format_.field("signs"), group, v)); });
    return negated(grid4(e_.table(formats::iq3_xxs_grid()), index), signs, step % 8 / 2, step % 2);
  }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("signs"), s, v), 28, 4);
    return sub_scale(load_f16(r.at, format_.field("d"), 0, v), n, 0.5f, 0.25f);
  }

private:
  KeptRows signs_;
};

class IQ3SDecoder final : public Codebook {
public:
  using Codebook::Codebook;

  Geometry geometry() const override { return codebook(32, 15); }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    Value low = bits(load_words(r.at, format_.field("qs"), step / 4, v), 8 * (step % 4), 8);
    Value high = bits(load_words(r.at, format_.field("qh"), step / 32, v), step % 32, 1, 8);
    Value signs = load_words(r.at, format_.field("signs"), step / 8, v);
    return negated(grid4(e_.table(formats::iq3_s_grid()), e_.bit_or(low, high)), signs, step % 8 / 2, step % 2);
  }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("sc"), 0, v), 4 * s, 4);
    return sub_scale(load_f16(r.at, format_.field("d"), 0, v), n, 2, 1);
  }
};

} // namespace

std::unique_ptr<Decoder> make_iq3_xxs_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<IQ3XXSDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_iq3_s_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<IQ3SDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
