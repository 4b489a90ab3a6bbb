// Decoder of iq4_nl: w = d * L[q], L a table of 16 signed levels; nibbles as halves. A byte shuffle turns codes into
// levels.

#include "codegen/kernels/decoders/decoders.h"
#include "codegen/kernels/decoders/nibbles.h"
#include "codegen/kernels/decoders/record_scratch.h"

namespace cortiq::codegen {
namespace {

const std::vector<int8_t> kLevels = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

std::vector<int8_t> raised_levels_table() {
  std::vector<int8_t> raised;
  for (int level : kLevels)
    raised.push_back(int8_t(level + 128 - 256 * (level >= 0)));
  return raised;
}

class Iq4NlDecoder : public NibbleHalves {
public:
  using NibbleHalves::NibbleHalves;

  Geometry geometry() const override {
    Geometry g;
    g.is_signed = true;
    g.umax = 127;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) final { return by_low_nibbles(kLevels, codes(r, v, step)); }
  Value raised_levels(const Record& r, unsigned v, unsigned step) final {
    return by_low_nibbles(raised_levels_table(), codes(r, v, step));
  }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }

protected:
  /// In the low nibbles of bytes.
  virtual Value codes(const Record& r, unsigned v, unsigned step) { return nibbles_below(r, v, step); }
};

class Iq4XsDecoder final : public Iq4NlDecoder {
public:
  using Iq4NlDecoder::Iq4NlDecoder;

  Geometry geometry() const override {
    Geometry g = Iq4NlDecoder::geometry();
    g.block = 256;
    return g;
  }
  void begin_group(Address, Address scratch, unsigned) override { shared_.set(scratch); }
  void begin_record(const Record& r, unsigned vectors) override {
    for (unsigned v = 0; v < vectors; ++v) {
      shared_.put(e_, v, kD, load_f16(r.at, format_.field("d"), 0, v));
      Value high = e_.widen_unsigned(e_.load(e_.narrow(e_.i16_type()), unit(r.at, format_.field("sh"), 0, v)));
      shared_.put(e_, v, kHigh, e_.shl(high, 4));
    }
  }
  Value scale(const Record& r, unsigned v, unsigned g) override {
    Value low = load_words(r.at, format_.field("sl"), 0, v), high = shared_.i32(e_, v, kHigh);
    low = e_.bit_and(g ? e_.shr_u(low, 4 * g) : low, e_.splat_i32(15));
    high = e_.bit_and(g ? e_.shr_u(high, 2 * g) : high, e_.splat_i32(0x30));
    Value sc = e_.sub(e_.bit_or(low, high), e_.splat_i32(32));
    return e_.mul(e_.to_f32(sc), shared_.f32(e_, v, kD));
  }

protected:
  Value codes(const Record& r, unsigned v, unsigned step) override {
    return nibbles_below(r, v, step % 8, step / 8 * 4);
  }

private:
  enum Shared : unsigned { kD, kHigh };
  RecordScratch shared_;
};

} // namespace

std::unique_ptr<Decoder> make_iq4_xs_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Iq4XsDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_iq4_nl_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Iq4NlDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
