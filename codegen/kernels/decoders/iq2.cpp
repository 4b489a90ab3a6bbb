// Decoders of the codecs with grids of eight magnitudes (8, 25, 43):
//   iq2_xxs   32 weights a scale, 8-bit grid indices, 7-bit sign indices beside the scale
//   iq2_xs    16 weights a scale, a 9-bit grid index and a 7-bit sign index in 16 bits
//   iq2_s     16 weights a scale, 10-bit grid indices, sign bytes
// w = +-magnitude * d * (1/2 + n) / 4

#include "codegen/kernels/decoders/codebook.h"
#include "codegen/kernels/decoders/decoders.h"
#include "formats/codec/iq_grids.h"

namespace cortiq::codegen {
namespace {

constexpr unsigned kLargest = 43;

class IQ2XXSDecoder final : public Codebook {
public:
  using Codebook::Codebook;

  Geometry geometry() const override { return codebook(32, kLargest); }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    const unsigned group = step / 8, l = step % 8 / 2, half = step % 2;
    Value index =
        index_[v].get(r, step / 2, [&] { return bits(load_words(r.at, format_.field("qs"), group, v), 8 * l, 8); });
    Value signs = signs_[v].get(
        r, group, [&] { return spread_sign_indices(load_words(r.at, format_.field("signs"), group, v)); });
    return negated(grid8(e_.table(formats::iq2_xxs_grid()), index, half), signs, l, half);
  }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("signs"), s, v), 28, 4);
    return sub_scale(load_f16(r.at, format_.field("d"), 0, v), n, 0.25f, 0.125f);
  }

private:
  KeptRows index_, signs_;
};

/// iq2_xs and iq2_s: nibbles of scales, one for 16 weights.
class IQ2Nibbles : public Codebook {
public:
  using Codebook::Codebook;

  Geometry geometry() const override { return codebook(16, kLargest); }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("sc"), s / 8, v), 4 * (s % 8), 4);
    return sub_scale(load_f16(r.at, format_.field("d"), 0, v), n, 0.25f, 0.125f);
  }
};

class IQ2XSDecoder final : public IQ2Nibbles {
public:
  using IQ2Nibbles::IQ2Nibbles;

  Value levels(const Record& r, unsigned v, unsigned step) override {
    const unsigned eight = step / 2, half = step % 2, odd = eight % 2; // `odd`: which half of the dword
    Value word = load_words(r.at, format_.field("qs"), eight / 2, v);
    Value index = index_[v].get(r, eight, [&] { return bits(word, 16 * odd, 9); });
    // The sign indices of both halves end at a byte's bit 6 when they are moved by one.
    Value signs = signs_[v].get(r, eight / 2,
                                [&] { return with_parity(e_.bit_and(e_.shr_u(word, 1), e_.splat_i32(0x7f007f00))); });
    return negated(grid8(e_.table(formats::iq2_xs_grid()), index, half), signs, 2 * odd + 1, half);
  }

private:
  KeptRows index_, signs_;
};

class IQ2SDecoder final : public IQ2Nibbles {
public:
  using IQ2Nibbles::IQ2Nibbles;

  Value levels(const Record& r, unsigned v, unsigned step) override {
    const unsigned eight = step / 2, group = step / 8, l = eight % 4, half = step % 2;
    Value index = index_[v].get(r, eight, [&] {
      Value low = bits(load_words(r.at, format_.field("qs"), group, v), 8 * l, 8);
      Value high = bits(load_words(r.at, format_.field("qh"), group / 4, v), 2 * (eight % 16), 2, 8);
      return e_.bit_or(low, high);
    });
    Value signs = load_words(r.at, format_.field("signs"), group, v);
    return negated(grid8(e_.table(formats::iq2_s_grid()), index, half), signs, l, half);
  }

private:
  KeptRows index_;
};

} // namespace

std::unique_ptr<Decoder> make_iq2_xxs_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<IQ2XXSDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_iq2_xs_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<IQ2XSDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_iq2_s_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<IQ2SDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
