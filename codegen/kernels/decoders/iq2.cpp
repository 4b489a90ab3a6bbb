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

constexpr std::array<uint8_t, 3> kMagnitudes = {8, 25, 43};

class IQ2 : public Codebook {
public:
  using Codebook::Codebook;

  std::vector<uint8_t> turned_order() const final {
    return e_.byte_tables() ? order_of_halves(turned_width()) : std::vector<uint8_t>();
  }
  Value levels(const Record& r, unsigned v, unsigned step) final {
    if (turned_)
      return turned_levels(r, v, step, 0);
    if (e_.byte_tables())
      return lookup_low_bits(level_table(0), codes(r, v, step));
    const unsigned eight = step / 2, half = step % 2;
    Value index = index_[v].get(r, eight, [&] { return grid_index(r, v, eight); });
    Value signs = signs_[v].get(r, step / 8, [&] { return sign_bytes(r, v, step / 8); });
    return negated(grid8(e_.table(grid()), index, half), signs, place(eight % 4), half);
  }
  Value raised_levels(const Record& r, unsigned v, unsigned step) final {
    if (turned_)
      return turned_levels(r, v, step, 0x80);
    return e_.byte_tables() ? lookup_low_bits(level_table(0x80), codes(r, v, step))
                            : Codebook::raised_levels(r, v, step);
  }

protected:
  virtual std::span<const uint64_t> grid() const = 0;
  virtual Value grid_index(const Record& r, unsigned v, unsigned eight) = 0; ///< a lane
  virtual Indices indices(const Record& r, unsigned v, unsigned group) = 0;  ///< of a group's four eights
  /// Signs of a group's eights, a byte each.
  virtual Value sign_bytes(const Record& r, unsigned v, unsigned group) = 0;
  /// Which byte of indices and signs is that of a group's eight number `l`.
  virtual unsigned place(unsigned l) const { return l; }
  /// As order_of_halves() wants it.
  virtual unsigned turned_width() const { return 0; }

private:
  /// Entries from which on four gathers of sixteen take less than lookups of 128 bytes, where gathers are quick.
  static constexpr size_t kLeastGathered = 512;

  /// Codes of four weights of an entry's half.
  static std::array<uint8_t, 4> half_codes(uint64_t entry, unsigned half) {
    std::array<uint8_t, 4> code;
    for (unsigned j = 0; j < 4; ++j) {
      const uint8_t magnitude = uint8_t(entry >> (32 * half + 8 * j));
      code[j] = magnitude == kMagnitudes[2] ? 2 : magnitude == kMagnitudes[1] ? 1 : 0;
    }
    return code;
  }
  /// Four weights of an entry's half, two bits each.
  std::vector<uint8_t> packed(unsigned half) const {
    std::vector<uint8_t> table;
    for (const uint64_t entry : grid()) {
      const std::array<uint8_t, 4> code = half_codes(entry, half);
      table.push_back(turned_ ? turned_entry(code) : uint8_t(code[0] | code[1] << 2 | code[2] << 4 | code[3] << 6));
    }
    return table;
  }
  /// Entries and signs of steps 4 * part.. as two_weights() wants them.
  Value turned_entries(const Record& r, unsigned v, unsigned group, unsigned part) {
    if (e_.quick_gathers() && grid().size() >= kLeastGathered) {
      const unsigned eight = 4 * group + 2 * part;
      return entries_[part][v].get(r, group, [&] {
        return gathered_part(packed(0), packed(1), turned_width(), grid_index(r, v, eight),
                             grid_index(r, v, eight + 1));
      });
    }
    const auto half = [&](unsigned h) {
      return packed_[h][v].get(r, group, [&] {
        const Indices index = kept_indices(r, v, group);
        return lookup_bytes(packed(h), index.low, index.high);
      });
    };
    return entries_[part][v].get(r, group, [&] { return turned_part(half(0), half(1), part, turned_width()); });
  }
  Value turned_signs(const Record& r, unsigned v, unsigned group, unsigned part) {
    Value signs = e_.bitcast(signs_[v].get(r, group, [&] { return sign_bytes(r, v, group); }), e_.i32());
    if (!turned_width())
      return e_.bitcast(part ? e_.shr_u(signs, 2) : e_.shl(signs, 2), e_.i8());
    // The second half's signs are the upper nibbles.
    return e_.bitcast(part ? low_and_high(e_.shr_u(signs, turned_width() - 2), e_.shr_u(signs, 2), turned_width())
                           : low_and_high(e_.shl(signs, 2), e_.shl(signs, turned_width() - 2), turned_width()),
                      e_.i8());
  }
  Value turned_levels(const Record& r, unsigned v, unsigned step, uint8_t raised) {
    const unsigned group = step / 8, part = step % 8 / 4, i = step % 4;
    Value two = two_[i / 2][v].get(r, step / 4, [&] {
      return two_weights(turned_entries(r, v, group, part),
                         part_signs_[v].get(r, step / 4, [&] { return turned_signs(r, v, group, part); }), i / 2);
    });
    return level_of(two, i, raised, [](unsigned code, unsigned sign) {
      const int magnitude = kMagnitudes[std::min(code, 2u)];
      return sign ? -magnitude : magnitude;
    });
  }
  /// Levels by magnitude (two bits) and sign.
  static std::vector<uint8_t> level_table(uint8_t raised) {
    std::vector<uint8_t> table;
    for (unsigned i = 0; i < 8; ++i) {
      const uint8_t magnitude = kMagnitudes[std::min(i & 3, 2u)];
      table.push_back(uint8_t(raised + (i & 4 ? -magnitude : magnitude)));
    }
    return table;
  }
  /// Kept where registers allow for it.
  Indices kept_indices(const Record& r, unsigned v, unsigned group) {
    const auto make = [&] { return indices(r, v, group); };
    return turned_ ? indices_[v].get(r, group, make) : make();
  }
  Value codes(const Record& r, unsigned v, unsigned step) {
    const unsigned group = step / 8, at = place(step % 8 / 2), half = step % 2;
    Value four = packed_[half][v].get(r, group, [&] {
      const Indices index = kept_indices(r, v, group);
      return lookup_bytes(packed(half), index.low, index.high);
    });
    Value signs = signs_[v].get(r, group, [&] { return sign_bytes(r, v, group); });
    return e_.blend_bits(e_.splat_i8(4), fields(signs, 8 * at + 4 * half, 1, 2), fields(four, 8 * at, 2, 0));
  }

  KeptRows index_, signs_, part_signs_;
  KeptIndices indices_;
  std::array<KeptRows, 2> packed_, entries_, two_;
};

class IQ2XXSDecoder final : public IQ2 {
public:
  using IQ2::IQ2;

  Geometry geometry() const override { return codebook(32, kMagnitudes.back()); }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("signs"), s, v), 28, 4);
    return sub_scale(record_d(r, v), n, 0.25f, 0.125f);
  }

protected:
  std::span<const uint64_t> grid() const override { return formats::iq2_xxs_grid(); }
  Value grid_index(const Record& r, unsigned v, unsigned eight) override {
    return bits(load_words(r.at, format_.field("qs"), eight / 4, v), 8 * (eight % 4), 8);
  }
  Indices indices(const Record& r, unsigned v, unsigned group) override {
    return {load_words(r.at, format_.field("qs"), group, v), {}};
  }
  Value sign_bytes(const Record& r, unsigned v, unsigned group) override {
    return spread_sign_indices(load_words(r.at, format_.field("signs"), group, v));
  }
};

/// iq2_xs and iq2_s: nibbles of scales, one for 16 weights.
class IQ2Nibbles : public IQ2 {
public:
  using IQ2::IQ2;

  Geometry geometry() const override { return codebook(16, kMagnitudes.back()); }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("sc"), s / 8, v), 4 * (s % 8), 4);
    return sub_scale(record_d(r, v), n, 0.25f, 0.125f);
  }
};

class IQ2XSDecoder final : public IQ2Nibbles {
public:
  using IQ2Nibbles::IQ2Nibbles;

protected:
  std::span<const uint64_t> grid() const override { return formats::iq2_xs_grid(); }
  Value grid_index(const Record& r, unsigned v, unsigned eight) override {
    return bits(load_words(r.at, format_.field("qs"), eight / 2, v), 16 * (eight % 2), 9);
  }
  Indices indices(const Record& r, unsigned v, unsigned group) override {
    auto [first, second] = words(r, v, group);
    return {even_bytes(first, e_.shl(second, 8)), {e_.shl(high_bytes(r, v, group), 7)}};
  }
  /// The upper bytes hold sign indices above the grid index's last bit.
  Value sign_bytes(const Record& r, unsigned v, unsigned group) override {
    Value index = e_.shr_u(high_bytes(r, v, group), 1);
    return e_.byte_tables() ? signs_by_index(index) : with_parity(e_.bit_and(index, e_.splat_i32(0x7f7f7f7f)));
  }
  unsigned place(unsigned l) const override { return l % 2 * 2 + l / 2; }
  unsigned turned_width() const override { return 8; }

private:
  std::pair<Value, Value> words(const Record& r, unsigned v, unsigned group) {
    const formats::LayoutField& qs = format_.field("qs");
    return {load_words(r.at, qs, 2 * group, v), load_words(r.at, qs, 2 * group + 1, v)};
  }
  /// Bytes 0 and 2 of the one, 1 and 3 of the other.
  Value even_bytes(Value even, Value odd) {
    Value mask = e_.splat_i32(0x00ff00ff);
    return e_.byte_tables() ? e_.blend_bits(mask, even, odd)
                            : e_.bit_or(e_.bit_and(even, mask), e_.bit_and_not(mask, odd));
  }
  /// The upper bytes of four 16-bit units.
  Value high_bytes(const Record& r, unsigned v, unsigned group) {
    return high_[v].get(r, group, [&] {
      auto [first, second] = words(r, v, group);
      return even_bytes(e_.shr_u(first, 8), second);
    });
  }

  KeptRows high_;
};

class IQ2SDecoder final : public IQ2Nibbles {
public:
  using IQ2Nibbles::IQ2Nibbles;

protected:
  std::span<const uint64_t> grid() const override { return formats::iq2_s_grid(); }
  Value grid_index(const Record& r, unsigned v, unsigned eight) override {
    Value low = bits(load_words(r.at, format_.field("qs"), eight / 4, v), 8 * (eight % 4), 8);
    Value high = bits(load_words(r.at, format_.field("qh"), eight / 16, v), 2 * (eight % 16), 2, 8);
    return e_.bit_or(low, high);
  }
  Indices indices(const Record& r, unsigned v, unsigned group) override {
    Value high = load_words(r.at, format_.field("qh"), group / 4, v);
    const unsigned first = group % 4 * 8;
    return {load_words(r.at, format_.field("qs"), group, v),
            {fields(high, first, 2, 7), fields(high, first + 1, 2, 7)}};
  }
  Value sign_bytes(const Record& r, unsigned v, unsigned group) override {
    return load_words(r.at, format_.field("signs"), group, v);
  }
  unsigned turned_width() const override { return 16; }
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
