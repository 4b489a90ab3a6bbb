// Decoder of stq1_0: groups of four weights 16 apart share a slot and a sign, which choose one of 32 patterns of four
// ternary levels; w = (level - 1) * d.
//
// Group g has weights 64*(g/16) + g%16 + 16p. The four weights of a step are neighbours, so they belong to four
// neighbouring groups at the same p: their slots are the nibbles of one dword's bytes, their signs one bit of
// another's. A byte shuffle by the slot in each of the two tables of p gives the levels.

#include "codegen/kernels/decoders/bit_fields.h"
#include "codegen/kernels/decoders/decoders.h"
#include "formats/codec/stq1_0_pattern.h"

namespace cortiq::codegen {
namespace {

class Stq10Decoder final : public BitFields {
public:
  using BitFields::BitFields;

  Geometry geometry() const override {
    Geometry g;
    g.block = 256;
    g.umax = 3;
    g.zero_point = 1;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    const unsigned section = step / 16, p = step % 16 / 4, q = step % 4; // weights 64*section + 16*p + 4*q..
    Value slots = load_bytes(r.at, format_.field("slots"), 2 * section + q / 2, v);
    if (q % 2)
      slots = e_.bitcast(e_.shr_u(e_.bitcast(slots, e_.i16()), 4), e_.i8());
    slots = e_.bit_and(slots, e_.splat_i8(0x0f));
    Value plus = e_.lookup16(table(0, p), slots), minus = e_.lookup16(table(1, p), slots);
    Value chosen = e_.sub(e_.splat_i8(0), codes(r, format_.field("signs"), v, 4 * section + q, 1));
    return e_.bit_xor(plus, e_.bit_and(e_.bit_xor(plus, minus), chosen));
  }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }

private:
  Value table(unsigned sign, unsigned p) {
    std::vector<int8_t> levels;
    for (unsigned slot = 0; slot < 16; ++slot)
      levels.push_back(int8_t(formats::kSTQ10Pattern[16 * sign + slot] >> (2 * p) & 3));
    return e_.table16(levels);
  }
};

} // namespace

std::unique_ptr<Decoder> make_stq1_0_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Stq10Decoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
