// Decoders of f32, f16 and bf16: a load (and a conversion) gives one weight of 8 or 16 rows. The stored record is one
// weight; the cores see eight of them as one.

#include "codegen/kernels/decoders/decoders.h"

namespace cortiq::codegen {
namespace {

class FloatDecoder final : public Decoder {
public:
  FloatDecoder(Emit& e, const KernelSpec& spec, formats::R16Format format)
      : Decoder(e, spec, std::move(format)), codec_(spec.codec) {}

  Geometry geometry() const override {
    Geometry g;
    g.block = 8;
    g.is_float = true;
    return g;
  }
  Value weight(const Record& r, unsigned v, unsigned i) override {
    Address at = unit(r.at + int64_t(rows_) * format_.block_bytes * i, format_.field("w"), 0, v);
    if (codec_ == formats::CodecId::kF32)
      return e_.load(e_.f32(), at);
    mlir::Type half = codec_ == formats::CodecId::kF16 ? e_.f16_type() : e_.bf16_type();
    return e_.to_f32(e_.load(e_.narrow(half), at));
  }
  Value levels(const Record&, unsigned, unsigned) override { return {}; }
  Value scale(const Record&, unsigned, unsigned) override { return {}; }

private:
  formats::CodecId codec_;
};

} // namespace

std::unique_ptr<Decoder> make_float_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<FloatDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
