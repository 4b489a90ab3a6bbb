// Decoders of the codecs whose record is [scale] [minimum] and 16 bytes of nibbles as halves:
//   q4_0, q4_block, q4_tiled   w = (q - 8) * d
//   q4_1                       w = q * d + m
// Registers: nothing is held over a record but constants (mask 0x0f).

#include "codegen/kernels/decoders/nibbles.h"

#include <utility>

#include "codegen/kernels/decoders/decoders.h"

namespace cortiq::codegen {

std::vector<unsigned> NibbleHalves::step_order(unsigned span) const {
  return {0, 4, 1, 5, 2, 6, 3, 7};
}

Value NibbleHalves::stored_bytes(const Record& record, unsigned v, unsigned step, unsigned first_unit) {
  const unsigned u = first_unit + step % 4;
  Loaded& last = loaded_[v];
  if (last.unit != u || last.base != record.at.base || last.disp != record.at.disp)
    last = {u, record.at.base, record.at.disp, load_bytes(record.at, format_.field("qs"), u, v)};
  return step < 4 ? last.bytes : std::exchange(last, {}).bytes;
}

Value NibbleHalves::nibbles_below(const Record& record, unsigned v, unsigned step, unsigned first_unit) {
  Value bytes = stored_bytes(record, v, step, first_unit);
  return step < 4 ? bytes : e_.bitcast(e_.shr_u(e_.bitcast(bytes, e_.i16()), 4), e_.i8());
}

namespace {

class NibbleDecoder final : public NibbleHalves {
public:
  NibbleDecoder(Emit& e, const KernelSpec& spec, formats::R16Format format, bool has_min)
      : NibbleHalves(e, spec, std::move(format)), has_min_(has_min) {}

  Geometry geometry() const override {
    Geometry g;
    g.umax = 15;
    g.zero_point = has_min_ ? 0 : 8;
    g.has_min = has_min_;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override { return nibbles(r, v, step); }
  bool has_high_levels() const override { return true; }
  Value high_levels(const Record& r, unsigned v, unsigned step) override { return nibbles_in_place(r, v, step); }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }
  Value minimum(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("m"), 0, v); }

private:
  bool has_min_;
};

} // namespace

std::unique_ptr<Decoder> make_nibble_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<NibbleDecoder>(e, spec, std::move(format), spec.codec == formats::CodecId::kQ4_1);
}

} // namespace cortiq::codegen
