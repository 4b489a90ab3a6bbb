// Decoders of the codecs with grids of four magnitudes, 32 weights a scale:
//   iq3_xxs   w = +-magnitude * d * (1/2 + n) / 2, 8-bit grid indices, 7-bit sign indices beside the scale
//   iq3_s     w = +-magnitude * d * (1 + 2 n), 9-bit grid indices, sign bytes
// Both have eight magnitudes, three bits in a packed grid: two in one table, the third in another, where room for the
// signs is beside it.

#include "codegen/kernels/decoders/codebook.h"
#include "codegen/kernels/decoders/decoders.h"
#include "formats/codec/iq_grids.h"

namespace cortiq::codegen {
namespace {

using Magnitudes = std::array<uint8_t, 8>;

class IQ3 : public Codebook {
public:
  using Codebook::Codebook;

  Geometry geometry() const final { return codebook(32, magnitudes().back()); }
  Value levels(const Record& r, unsigned v, unsigned step) final {
    if (e_.byte_tables())
      return lookup_low_bits(level_table(0), codes(r, v, step));
    Value signs = signs_[v].get(r, step / 8, [&] { return sign_bytes(r, v, step / 8); });
    return negated(grid4(e_.table(grid()), grid_index(r, v, step)), signs, step % 8 / 2, step % 2);
  }
  Value raised_levels(const Record& r, unsigned v, unsigned step) final {
    return e_.byte_tables() ? lookup_low_bits(level_table(0x80), codes(r, v, step))
                            : Codebook::raised_levels(r, v, step);
  }

protected:
  virtual std::span<const uint32_t> grid() const = 0;
  virtual const Magnitudes& magnitudes() const = 0;
  virtual Value grid_index(const Record& r, unsigned v, unsigned step) = 0; ///< a lane
  /// Bit 8 of the indices of four steps, at bit 7 of their bytes, where there is one.
  virtual std::vector<Value> high_bits(const Record& r, unsigned v, unsigned four) { return {}; }
  /// Signs of a group of 32 weights, a byte for eight.
  virtual Value sign_bytes(const Record& r, unsigned v, unsigned group) = 0;

private:
  unsigned code(uint32_t entry, unsigned j) const {
    const auto at = std::ranges::find(magnitudes(), uint8_t(entry >> 8 * j));
    return unsigned(at - magnitudes().begin());
  }
  /// Of the weights of each entry: two low bits, or the third.
  std::vector<uint8_t> packed(bool third) const {
    std::vector<uint8_t> table;
    for (const uint32_t entry : grid()) {
      unsigned four = 0;
      for (unsigned j = 0; j < 4; ++j)
        four |= (third ? code(entry, j) >> 2 : code(entry, j) & 3) << 2 * j;
      table.push_back(uint8_t(four));
    }
    return table;
  }
  /// Levels by magnitude (three bits) and sign.
  std::vector<uint8_t> level_table(uint8_t raised) const {
    std::vector<uint8_t> table;
    for (unsigned i = 0; i < 16; ++i)
      table.push_back(uint8_t(raised + (i & 8 ? -magnitudes()[i & 7] : magnitudes()[i & 7])));
    return table;
  }
  /// Bit j of a nibble at bit 2j + 1.
  static std::vector<uint8_t> spread_table() {
    std::vector<uint8_t> table;
    for (unsigned i = 0; i < 16; ++i)
      table.push_back(uint8_t((i & 1) << 1 | (i & 2) << 2 | (i & 4) << 3 | (i & 8) << 4));
    return table;
  }
  Value codes(const Record& r, unsigned v, unsigned step) {
    const unsigned four = step / 4, first = 8 * (step % 4);
    Value index = load_words(r.at, format_.field("qs"), four, v);
    Value low = low_[v].get(r, four, [&] { return lookup_bytes(packed(false), index, high_bits(r, v, four)); });
    Value high = high_[v].get(r, four, [&] {
      Value signs = signs_[v].get(r, step / 8, [&] { return sign_bytes(r, v, step / 8); });
      Value spread = lookup_low_bits(spread_table(), fields(signs, 16 * (four % 2), 4, 0));
      return e_.bit_or(lookup_bytes(packed(true), index, high_bits(r, v, four)), spread);
    });
    return e_.blend_bits(e_.splat_i8(12), fields(high, first, 2, 2), fields(low, first, 2, 0));
  }

  KeptRows signs_, low_, high_;
};

class IQ3XXSDecoder final : public IQ3 {
public:
  using IQ3::IQ3;

  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("signs"), s, v), 28, 4);
    return sub_scale(load_f16(r.at, format_.field("d"), 0, v), n, 0.5f, 0.25f);
  }

protected:
  std::span<const uint32_t> grid() const override { return formats::iq3_xxs_grid(); }
  const Magnitudes& magnitudes() const override {
    static constexpr Magnitudes kMagnitudes = {4, 12, 20, 28, 36, 44, 52, 62};
    return kMagnitudes;
  }
  Value grid_index(const Record& r, unsigned v, unsigned step) override {
    return bits(load_words(r.at, format_.field("qs"), step / 4, v), 8 * (step % 4), 8);
  }
  Value sign_bytes(const Record& r, unsigned v, unsigned group) override {
    return spread_sign_indices(load_words(r.at, format_.field("signs"), group, v));
  }
};

class IQ3SDecoder final : public IQ3 {
public:
  using IQ3::IQ3;

  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("sc"), 0, v), 4 * s, 4);
    return sub_scale(load_f16(r.at, format_.field("d"), 0, v), n, 2, 1);
  }

protected:
  std::span<const uint32_t> grid() const override { return formats::iq3_s_grid(); }
  const Magnitudes& magnitudes() const override {
    static constexpr Magnitudes kMagnitudes = {1, 3, 5, 7, 9, 11, 13, 15};
    return kMagnitudes;
  }
  Value grid_index(const Record& r, unsigned v, unsigned step) override {
    Value low = bits(load_words(r.at, format_.field("qs"), step / 4, v), 8 * (step % 4), 8);
    return e_.bit_or(low, bits(load_words(r.at, format_.field("qh"), step / 32, v), step % 32, 1, 8));
  }
  std::vector<Value> high_bits(const Record& r, unsigned v, unsigned four) override {
    return {fields(load_words(r.at, format_.field("qh"), four / 8, v), four % 8 * 4, 1, 7)};
  }
  Value sign_bytes(const Record& r, unsigned v, unsigned group) override {
    return load_words(r.at, format_.field("signs"), group, v);
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
