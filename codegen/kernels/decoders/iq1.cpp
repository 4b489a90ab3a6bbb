// Decoders of the codecs with a grid of eight levels of -1, 0, 1 that a bit moves by an eighth up or down:
//   iq1_s   32 weights a scale and a shift
//   iq1_m   16 weights a scale, 8 a shift; d is spread over the scale words
// w = d * (2 n + 1) * (level +- 1/8); the integer level here is 8 * level +- 1, the scale an eighth.
// The grid has too many entries for registers: where there are tables of bytes and fields of bits, an entry is gathered
// as 16 bits, two a weight, and serves two steps. For one token its codes are turned (codebook.h), and where gathers
// are slow the grid is looked up all the same, by tables in memory: 19 lookups serve 64 entries, which four gathers of
// sixteen would take longer for.

#include "codegen/kernels/decoders/codebook.h"
#include "codegen/kernels/decoders/decoders.h"
#include "formats/codec/iq_grids.h"

namespace cortiq::codegen {
namespace {

class IQ1 : public Codebook {
public:
  using Codebook::Codebook;

protected:
  static constexpr unsigned kLargest = 9;

  /// The upper three bits of the indices of a group's four eights, at bit 4 of bytes; anything around them.
  virtual Value tops(const Record& r, unsigned v, unsigned group) = 0;
  virtual Value index_of(const Record& r, unsigned v, unsigned eight) = 0; ///< a lane
  /// Bit 4 of bytes: the shift of the eight whose half stands there, for steps 4 * part.. of a group.
  virtual Value turned_shift(const Record& r, unsigned v, unsigned group, unsigned part) = 0;
  /// As order_of_halves() wants it.
  virtual unsigned turned_width() const = 0;

  std::vector<uint8_t> turned_order() const final {
    return e_.byte_tables() ? order_of_halves(turned_width()) : std::vector<uint8_t>();
  }
  static uint8_t turned_half(uint64_t entry, unsigned half) {
    std::array<uint8_t, 4> code;
    for (unsigned j = 0; j < 4; ++j)
      code[j] = uint8_t(int8_t(entry >> (32 * half + 8 * j)) + 1);
    return turned_entry(code);
  }
  std::vector<uint8_t> halves(unsigned half) const {
    std::vector<uint8_t> table;
    for (const uint64_t entry : formats::iq1_grid())
      table.push_back(turned_half(entry, half));
    return table;
  }
  /// Halves of entries that turned steps 4 * part.. take.
  Value gathered(const Record& r, unsigned v, unsigned group, unsigned part) {
    const unsigned eight = 4 * group + 2 * part;
    return gathered_part(halves(0), halves(1), 16, index_of(r, v, eight), index_of(r, v, eight + 1));
  }
  Value looked_up_part(const Record& r, unsigned v, unsigned group, unsigned part) {
    const auto half = [&](unsigned h) {
      return halves_[h][v].get(r, group, [&] {
        Value low = load_words(r.at, format_.field("qs"), group, v);
        Value top = tops_[v].get(r, group, [&] { return e_.bitcast(tops(r, v, group), e_.i32()); });
        return h ? second_half(low, top)
                 : lookup_bytes(halves(0), low, {e_.shl(top, 3), e_.shl(top, 2), e_.shl(top, 1)});
      });
    };
    return turned_width() ? turned_part(half(0), half(1), part, turned_width()) : half(part);
  }
  /// The grid is sorted by its entries' second halves, which change at most once in sixteen entries in turn: what it
  /// is before and after, and from which entry on, is told by the index's upper seven bits.
  Value second_half(Value low, Value top) {
    constexpr size_t kRun = 16;
    const std::vector<uint8_t> entries = halves(1);
    std::vector<uint8_t> before, after, from;
    for (size_t i = 0; i < entries.size(); i += kRun) {
      size_t change = i + 1;
      while (change < i + kRun - 1 && entries[change] == entries[i])
        ++change;
      before.push_back(entries[i]);
      after.push_back(entries[change]);
      from.push_back(uint8_t(change));
    }
    Value run = e_.blend_bits(e_.splat_i8(0x0f), e_.bitcast(e_.shr_u(low, 4), e_.i8()), e_.bitcast(top, e_.i8()));
    Value is_before = e_.sub(e_.bitcast(low, e_.i8()), lookup_bytes(from, run, {}));
    return e_.select_negative(is_before, lookup_bytes(before, run, {}), lookup_bytes(after, run, {}));
  }
  /// Two weights by their codes and the shift, five bits.
  Value turned_levels(const Record& r, unsigned v, unsigned step, uint8_t raised) {
    const unsigned group = step / 8, part = step % 8 / 4, i = step % 4;
    Value two = two_[i / 2][v].get(r, step / 4, [&] {
      Value entries = entries_[v].get(r, step / 4, [&] {
        return e_.quick_gathers() ? gathered(r, v, group, part) : looked_up_part(r, v, group, part);
      });
      Value shift = part_shift_[v].get(r, step / 4, [&] { return turned_shift(r, v, group, part); });
      if (i < 2)
        entries = e_.bitcast(e_.shr_u(e_.bitcast(entries, e_.i32()), 4), e_.i8());
      return e_.blend_bits(e_.splat_i8(0x10), e_.bitcast(shift, e_.i8()), entries);
    });
    std::vector<uint8_t> table;
    for (unsigned bits = 0; bits < 64; ++bits)
      table.push_back(uint8_t(raised + 8 * (int(bits >> 2 * (i % 2) & 3) - 1) + (bits & 0x10 ? -1 : 1)));
    return lookup_low_bits(table, two);
  }

  /// Eight times the levels of an entry's half, moved by `shift`, bytes of +-1.
  Value moved(Value index, unsigned half, Value shift) {
    std::vector<uint64_t> grid;
    for (const uint64_t entry : formats::iq1_grid())
      grid.push_back(entry << 3 & 0xf8f8f8f8f8f8f8f8);
    return e_.add(grid8(e_.table(grid), index, half), shift);
  }
  /// Bytes of -1 where bit `bit` of the lane is set, else of 1.
  Value shift_bytes(Value word, unsigned bit) {
    Value down = e_.shr_s(bit < 31 ? e_.shl(word, 31 - bit) : word, 31);
    return e_.bitcast(e_.bit_or(down, e_.splat_i32(0x01010101)), e_.i8());
  }
  /// The same of the packed grid: `word` holds the shift at bit `bit`.
  Value moved_packed(Value entry, unsigned half, Value word, unsigned bit, uint8_t raised) {
    std::vector<uint8_t> table;
    for (unsigned i = 0; i < 8; ++i)
      table.push_back(uint8_t(raised + 8 * (int(i & 3) - 1) + (i & 4 ? -1 : 1)));
    Value code = e_.blend_bits(e_.splat_i8(4), fields(word, bit, 0, 2), fields(entry, 8 * half, 2, 0));
    return lookup_low_bits(table, code);
  }
  /// Entries of 16 bits, a weight's level plus 1 in two of them, in the low half of the lane.
  Value packed_entry(Value index) {
    std::vector<uint32_t> pairs(formats::iq1_grid().size() / 2 + 1); // the last entry's load reads on
    for (size_t i = 0; i < formats::iq1_grid().size(); ++i)
      for (unsigned j = 0; j < 8; ++j)
        pairs[i / 2] |= uint32_t(int8_t(formats::iq1_grid()[i] >> 8 * j) + 1) << (16 * (i % 2) + 2 * j);
    return e_.gather_i32({e_.table(pairs), 0}, index, 2);
  }
  Value eighth_scale(Value d, Value n) { return sub_scale(d, n, 0.25f, 0.125f); }

  KeptRows index_, shift_, entry_, entries_, part_shift_, tops_;
  std::array<KeptRows, 2> halves_, two_;
};

class IQ1SDecoder final : public IQ1 {
public:
  using IQ1::IQ1;

  Geometry geometry() const override { return codebook(32, kLargest); }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    if (turned_)
      return turned_levels(r, v, step, 0);
    if (e_.byte_tables())
      return packed_levels(r, v, step, 0);
    const unsigned group = step / 8;
    Value shift = shift_[v].get(r, group, [&] { return shift_bytes(high(r, v, group), shift_bit(group)); });
    return moved(index_[v].get(r, step / 2, [&] { return index(r, v, step); }), step % 2, shift);
  }
  Value raised_levels(const Record& r, unsigned v, unsigned step) override {
    if (turned_)
      return turned_levels(r, v, step, 0x80);
    return e_.byte_tables() ? packed_levels(r, v, step, 0x80) : IQ1::raised_levels(r, v, step);
  }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    Value n = bits(load_words(r.at, format_.field("qh"), s / 2, v), 16 * (s % 2) + 12, 3);
    return eighth_scale(record_d(r, v), n);
  }

protected:
  Value tops(const Record& r, unsigned v, unsigned group) override {
    return fields(high(r, v, group), 16 * (group % 2), 3, 4);
  }
  Value index_of(const Record& r, unsigned v, unsigned eight) override { return index(r, v, 2 * eight); }
  Value turned_shift(const Record& r, unsigned v, unsigned group, unsigned) override {
    return shift_[v].get(r, group, [&] {
      Value word = high(r, v, group);
      return e_.shr_s(group % 2 ? word : e_.shl(word, 16), 31);
    });
  }
  unsigned turned_width() const override { return e_.quick_gathers() ? 16 : 0; }

private:
  Value high(const Record& r, unsigned v, unsigned group) {
    return load_words(r.at, format_.field("qh"), group / 2, v);
  }
  static unsigned shift_bit(unsigned group) { return 16 * (group % 2) + 15; }
  Value index(const Record& r, unsigned v, unsigned step) {
    const unsigned group = step / 8, l = step % 8 / 2;
    Value low = bits(load_words(r.at, format_.field("qs"), group, v), 8 * l, 8);
    return e_.bit_or(low, bits(high(r, v, group), 16 * (group % 2) + 3 * l, 3, 8));
  }
  Value packed_levels(const Record& r, unsigned v, unsigned step, uint8_t raised) {
    Value entry = entry_[v].get(r, step / 2, [&] { return packed_entry(index(r, v, step)); });
    return moved_packed(entry, step % 2, high(r, v, step / 8), shift_bit(step / 8), raised);
  }
};

class IQ1MDecoder final : public IQ1 {
public:
  using IQ1::IQ1;

  Geometry geometry() const override { return codebook(16, kLargest); }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    if (turned_)
      return turned_levels(r, v, step, 0);
    if (e_.byte_tables())
      return packed_levels(r, v, step, 0);
    const unsigned eight = step / 2;
    Value shift = shift_[v].get(r, eight, [&] { return shift_bytes(high(r, v, eight), shift_bit(eight)); });
    return moved(index_[v].get(r, eight, [&] { return index(r, v, eight); }), step % 2, shift);
  }
  Value raised_levels(const Record& r, unsigned v, unsigned step) override {
    if (turned_)
      return turned_levels(r, v, step, 0x80);
    return e_.byte_tables() ? packed_levels(r, v, step, 0x80) : IQ1::raised_levels(r, v, step);
  }
  Value scale(const Record& r, unsigned v, unsigned s) override {
    const formats::LayoutField& sc = format_.field("sc");
    Value n = bits(load_words(r.at, sc, s / 8, v), 16 * (s / 4 % 2) + 3 * (s % 4), 3);
    Value d = d_[v].get(r, 0, [&] {
      Value low = load_words(r.at, sc, 0, v), high = load_words(r.at, sc, 1, v);
      Value half = e_.bit_or(e_.bit_or(bits(low, 12, 4, 0), bits(low, 28, 4, 4)),
                             e_.bit_or(bits(high, 12, 4, 8), bits(high, 28, 4, 12)));
      return e_.half_bits_to_f32(half);
    });
    return eighth_scale(d, n);
  }

protected:
  Value tops(const Record& r, unsigned v, unsigned group) override {
    return fields(high(r, v, 4 * group), 16 * (group % 2), 4, 4);
  }
  Value index_of(const Record& r, unsigned v, unsigned eight) override { return index(r, v, eight); }
  Value turned_shift(const Record& r, unsigned v, unsigned group, unsigned part) override {
    const unsigned first = shift_bit(4 * group + 2 * part), second = shift_bit(4 * group + 2 * part + 1);
    return fields_at(high(r, v, 4 * group), {first, second, first, second}, 4);
  }
  unsigned turned_width() const override { return 16; }

private:
  Value high(const Record& r, unsigned v, unsigned eight) {
    return load_words(r.at, format_.field("qh"), eight / 8, v);
  }
  static unsigned shift_bit(unsigned eight) { return 4 * (eight % 8) + 3; }
  Value index(const Record& r, unsigned v, unsigned eight) {
    Value low = bits(load_words(r.at, format_.field("qs"), eight / 4, v), 8 * (eight % 4), 8);
    return e_.bit_or(low, bits(high(r, v, eight), 4 * (eight % 8), 3, 8));
  }
  Value packed_levels(const Record& r, unsigned v, unsigned step, uint8_t raised) {
    const unsigned eight = step / 2;
    Value entry = entry_[v].get(r, eight, [&] { return packed_entry(index(r, v, eight)); });
    return moved_packed(entry, step % 2, high(r, v, eight), shift_bit(eight), raised);
  }

  KeptRows d_;
};

} // namespace

std::unique_ptr<Decoder> make_iq1_s_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<IQ1SDecoder>(e, spec, std::move(format));
}
std::unique_ptr<Decoder> make_iq1_m_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<IQ1MDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
