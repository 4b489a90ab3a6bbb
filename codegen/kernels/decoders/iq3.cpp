// Decoders of the codecs with grids of four magnitudes, 32 weights a scale:
//   iq3_xxs   w = +-magnitude * d * (1/2 + n) / 2, 8-bit grid indices, 7-bit sign indices beside the scale
//   iq3_s     w = +-magnitude * d * (1 + 2 n), 9-bit grid indices, sign bytes
// Both have eight magnitudes, three bits in a packed grid: two in one table, the third in another, where room for the
// signs is beside it. Turned steps (codebook.h) take weight i of each of four entries; its four bits are joined in six:
//
//   low bytes     c0 | c1 << 2 | c2 << 4 | c3 << 6, the two low bits of the codes
//   high bytes    p1 | p2 << 2 | p0 << 4 | p3 << 6, the third bit and the sign
//   weights 0..2  by bits 2 i, 2 i + 1 of the low bytes, and those of the high ones where p is
//   weight 3      by bits 6, 7 of both, moved down

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
  std::vector<uint8_t> turned_order() const final {
    return e_.byte_tables() ? order_of_halves(8) : std::vector<uint8_t>();
  }
  Value levels(const Record& r, unsigned v, unsigned step) final {
    if (turned_)
      return turned_levels(r, v, step, 0);
    if (e_.byte_tables())
      return lookup_low_bits(level_table(0), codes(r, v, step));
    Value signs = signs_[v].get(r, step / 8, [&] { return sign_bytes(r, v, step / 8); });
    return negated(grid4(e_.table(grid()), grid_index(r, v, step)), signs, step % 8 / 2, step % 2);
  }
  Value raised_levels(const Record& r, unsigned v, unsigned step) final {
    if (turned_)
      return turned_levels(r, v, step, 0x80);
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
  /// Where the third bit of weight j stands in high bytes, the sign above it.
  unsigned third_at(unsigned j) const {
    constexpr std::array<unsigned, 4> kTurned = {4, 0, 2, 6};
    return turned_ ? kTurned[j] : 2 * j;
  }
  /// Of the weights of each entry: two low bits, or the third.
  std::vector<uint8_t> packed(bool third) const {
    std::vector<uint8_t> table;
    for (const uint32_t entry : grid()) {
      unsigned four = 0;
      for (unsigned j = 0; j < 4; ++j)
        four |= third ? code(entry, j) >> 2 << third_at(j) : (code(entry, j) & 3) << 2 * j;
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
  /// Bit j of a nibble as the sign of weight j.
  std::vector<uint8_t> spread_table() const {
    std::vector<uint8_t> table;
    for (unsigned i = 0; i < 16; ++i) {
      unsigned four = 0;
      for (unsigned j = 0; j < 4; ++j)
        four |= (i >> j & 1) << (third_at(j) + 1);
      table.push_back(uint8_t(four));
    }
    return table;
  }
  /// Kept where registers allow for it.
  Indices kept_indices(const Record& r, unsigned v, unsigned four) {
    const auto make = [&] { return Indices{load_words(r.at, format_.field("qs"), four, v), high_bits(r, v, four)}; };
    return turned_ ? indices_[v].get(r, four, make) : make();
  }
  Value low_bytes(const Record& r, unsigned v, unsigned four) {
    return low_[v].get(r, four, [&] {
      const Indices index = kept_indices(r, v, four);
      return lookup_bytes(packed(false), index.low, index.high);
    });
  }
  Value high_bytes(const Record& r, unsigned v, unsigned four) {
    return high_[v].get(r, four, [&] {
      Value signs = signs_[v].get(r, four / 2, [&] { return sign_bytes(r, v, four / 2); });
      Value spread = lookup_low_bits(spread_table(), fields(signs, 16 * (four % 2), 4, 0));
      const Indices index = kept_indices(r, v, four);
      return e_.bit_or(lookup_bytes(packed(true), index.low, index.high), spread);
    });
  }
  Value turned_levels(const Record& r, unsigned v, unsigned step, uint8_t raised) {
    const unsigned i = step % 4;
    Value low = low_bytes(r, v, step / 4), high = high_bytes(r, v, step / 4);
    const auto moved = [&](Value bytes, unsigned bits) {
      return e_.bitcast(e_.shr_u(e_.bitcast(bytes, e_.i32()), bits), e_.i8());
    };
    // Where the two low bits of the code and the third with the sign are.
    const unsigned low_at = i == 3 ? 2 : 2 * i, pair_at = i == 3 ? 0 : third_at(i);
    Value bits = i == 3 ? moved(e_.blend_bits(e_.splat_i8(0x30), moved(high, 2), low), 4)
                        : e_.blend_bits(e_.splat_i8(3 << pair_at), high, low);
    std::vector<uint8_t> table;
    for (unsigned n = 0; n < 64; ++n) {
      const unsigned pair = n >> pair_at & 3;
      const uint8_t magnitude = magnitudes()[(n >> low_at & 3) | (pair & 1) << 2];
      table.push_back(uint8_t(raised + (pair & 2 ? -magnitude : magnitude)));
    }
    return lookup_low_bits(table, bits);
  }
  Value codes(const Record& r, unsigned v, unsigned step) {
    const unsigned first = 8 * (step % 4);
    Value low = low_bytes(r, v, step / 4), high = high_bytes(r, v, step / 4);
    return e_.blend_bits(e_.splat_i8(12), fields(high, first, 2, 2), fields(low, first, 2, 0));
  }

  KeptRows signs_, low_, high_;
  KeptIndices indices_;
};

class IQ3XXSDecoder final : public IQ3 {
public:
  using IQ3::IQ3;

  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("signs"), s, v), 28, 4);
    return sub_scale(record_d(r, v), n, 0.5f, 0.25f);
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
    return sub_scale(record_d(r, v), n, 2, 1);
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
