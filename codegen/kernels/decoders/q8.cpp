// Decoders of the int8 codecs:
//   q8_0            w = q * d, a scale for 32 weights in the record
//   q8_row, q8_2f   w = q * d, one scale a row in the header (q8_2f's column scales are in the activations by now)
//   i8_s            w = q * d, one f32 scale a tensor
// The stored record of q8_row and i8_s has 4 weights; the cores see 8 of them as one record of 32.

#include "codegen/kernels/decoders/decoders.h"

namespace cortiq::codegen {
namespace {

class Q80Decoder final : public Decoder {
public:
  using Decoder::Decoder;

  Geometry geometry() const override {
    Geometry g;
    g.is_signed = true;
    g.umax = 128;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return load_bytes(r.at, format_.field("q"), step, v);
  }
  Value scale(const Record& r, unsigned v, unsigned) override { return load_f16(r.at, format_.field("d"), 0, v); }
};

class Q8RowDecoder : public Decoder {
public:
  using Decoder::Decoder;

  Geometry geometry() const override {
    Geometry g;
    g.is_signed = true;
    g.umax = 128;
    g.row_scale = true;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return load_bytes(r.at + int64_t(rows_) * format_.block_bytes * step, format_.field("q"), 0, v);
  }
  Value scale(const Record&, unsigned, unsigned) override { return {}; }
  Value row_scale(Address group, unsigned v) override { return load_f16(group, format_.header_field("d"), 0, v); }
};

class I8SDecoder final : public Q8RowDecoder {
public:
  using Q8RowDecoder::Q8RowDecoder;

  Value row_scale(Address, unsigned) override { return e_.load_splat_f32({tensor_, 0}); }
};

} // namespace

std::unique_ptr<Decoder> make_i8_s_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<I8SDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_q8_0_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q80Decoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_q8_row_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q8RowDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
