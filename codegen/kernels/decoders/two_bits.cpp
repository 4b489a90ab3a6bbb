// Decoders of the codecs with two-bit codes:
//   tq2_0, q2_0, q2_0_g128   w = (q - 1) * d, one f16 scale a record of 256, 64 or 128 weights
//   g8_0                     the same with a bf16 scale for 8 weights; levels are signed there, since activation sums
//                            exist for 16 and 32 weights only
//   i2_s                     the same with one f32 scale a tensor, in the tensor part

#include "codegen/kernels/decoders/bit_fields.h"
#include "codegen/kernels/decoders/decoders.h"

namespace cortiq::codegen {
namespace {

class TwoBitDecoder final : public BitFields {
public:
  using BitFields::BitFields;

  Geometry geometry() const override {
    Geometry g;
    g.block = format_.block;
    g.umax = 3;
    g.zero_point = 1;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return codes(r, format_.field("qs"), v, step, 2);
  }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }
};

class G80Decoder final : public BitFields {
public:
  using BitFields::BitFields;

  Geometry geometry() const override {
    Geometry g;
    g.span = 8;
    g.is_signed = true;
    g.umax = 2;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return e_.sub(codes(r, format_.field("qs"), v, step, 2), e_.splat_i8(1));
  }
  Value scale(const Record& r, unsigned v, unsigned span) override {
    return e_.to_f32(e_.load(e_.narrow(e_.bf16_type()), unit(r.at, format_.field("d"), span, v)));
  }
};

class I2SDecoder final : public BitFields {
public:
  using BitFields::BitFields;

  Geometry geometry() const override {
    Geometry g;
    g.block = format_.block;
    g.umax = 3;
    g.zero_point = 1;
    g.row_scale = true;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return codes(r, format_.field("qs"), v, step, 2);
  }
  Value scale(const Record&, unsigned, unsigned) override { return {}; }
  Value row_scale(Address, unsigned) override { return e_.load_splat_f32({tensor_, 0}); }
};

} // namespace

std::unique_ptr<Decoder> make_two_bit_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<TwoBitDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_g8_0_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<G80Decoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_i2_s_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<I2SDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
