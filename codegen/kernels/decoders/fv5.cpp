// Decoders of Fermion's codecs:
//   fv5    w = (plus - minus) * (select ? high : low), three bit planes and two f32 scales for 256 weights. Two scales
//   take
//          turns weight by weight, so it decodes to float lanes.
//   fv5b, q8_k   w = q * d, one f32 scale for 256 int8 codes

#include "codegen/kernels/decoders/bit_fields.h"
#include "codegen/kernels/decoders/decoders.h"

namespace cortiq::codegen {
namespace {

class Fv5Decoder final : public BitFields {
public:
  using BitFields::BitFields;

  Geometry geometry() const override {
    Geometry g;
    g.block = format_.block;
    g.is_float = true;
    return g;
  }
  Value weight(const Record& r, unsigned v, unsigned i) override {
    Value level = e_.sub(bit(r, "plus", v, i), bit(r, "minus", v, i));
    Value low = load_words(r.at, format_.field("low"), 0, v), high = load_words(r.at, format_.field("high"), 0, v);
    Value chosen = e_.sub(e_.splat_i32(0), bit(r, "select", v, i)); // all ones for `high`
    Value scale = e_.bit_xor(low, e_.bit_and(e_.bit_xor(low, high), chosen));
    return e_.mul(e_.to_f32(level), e_.bitcast(scale, e_.f32()));
  }
  Value levels(const Record&, unsigned, unsigned) override { return {}; }
  Value scale(const Record&, unsigned, unsigned) override { return {}; }

private:
  /// Bit of weight i, 0 or 1 in each 32-bit lane.
  Value bit(const Record& r, std::string_view plane, unsigned v, unsigned i) {
    const unsigned at = 8 * (i % 4) + i % 32 / 4;
    Value word = load_words(r.at, format_.field(plane), i / 32, v);
    return e_.bit_and(at ? e_.shr_u(word, at) : word, e_.splat_i32(1));
  }
};

class Int8F32Decoder final : public Decoder {
public:
  using Decoder::Decoder;

  Geometry geometry() const override {
    Geometry g;
    g.block = format_.block;
    g.is_signed = true;
    g.umax = 128;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return load_bytes(r.at, format_.field("q"), step, v);
  }
  Value scale(const Record& r, unsigned v, unsigned) override {
    return e_.load(e_.f32(), unit(r.at, format_.field("d"), 0, v));
  }
};

} // namespace

std::unique_ptr<Decoder> make_fv5_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Fv5Decoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_int8_f32_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Int8F32Decoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
