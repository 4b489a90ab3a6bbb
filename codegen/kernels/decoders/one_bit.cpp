// Decoders of the sign codecs: w = bit ? +d : -d.
//   q1, q1s (32 weights a scale), q1g, q1_0 (128)
//   blr_u, blr_v (one scale a row in the header; blr_v's column scales are in the activations by now)
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
  Value weight_at(Address group, unsigned v, Value column) override {
    // Records of 32: the weight 4s + j is bit 8j + s of their one dword.
    Value record = e_.shr_u(column, 5);
    Value at =
        e_.bit_or(e_.shl(e_.bit_and(column, e_.splat_i32(3)), 3), e_.bit_and(e_.shr_u(column, 2), e_.splat_i32(7)));
    Value bit = e_.bit_and(e_.shr_v(gather_field(group, record, format_.field("qs"), v), at), e_.splat_i32(1));
    Value d = e_.half_bits_to_f32(gather_field(group, record, format_.field("d"), v));
    return e_.mul(e_.to_f32(e_.sub(e_.shl(bit, 1), e_.splat_i32(1))), d);
  }
};

class SignRowDecoder final : public BitFields {
public:
  using BitFields::BitFields;

  Geometry geometry() const override {
    Geometry g;
    g.umax = 2;
    g.zero_point = 1;
    g.row_scale = true;
    g.unroll = 2;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return codes(r, format_.field("qs"), v, step, 1, 1);
  }
  Value scale(const Record&, unsigned, unsigned) override { return {}; }
  Value row_scale(Address group, unsigned v) override { return load_f16(group, format_.header_field("d"), 0, v); }
};

} // namespace

std::unique_ptr<Decoder> make_sign_row_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<SignRowDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_one_bit_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<OneBitDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
