// Decoders of the codecs with a ladder of scales a row:
//   q4tp          w = (q - 8) * ladder[code]
//   q2tp          w = (q - 1.5) * ladder[code], here (2q - 3) * (ladder / 2); rung 0 is 0 and the others move up by one
//   q2tp_affine   w = (q - 1) * ladder[code], the same ladder
// A row's ladder is 32 f32: the first rung = 2^lo, each next one the previous times 2^step, by repeated multiplication
// (the chain's rounding is the codec's definition). Both starting values are stored in the row header, so that no
// exponential is needed here.
//
// Data: header lo f32, step f32, codes u32[ceil(blocks/6)] (six 5-bit codes a word); record: the codes of 32 weights.
// A lane's scale is looked up in its own row's ladder, in one of two ways:
//   By bits, with sixteen lanes, whose targets have masks and registers enough: begin_group keeps every fourth rung,
//   scale() chooses by the code's upper bits and walks up the last few by the chain's own products. Seven blends, three
//   products, no memory; a gather of sixteen lanes costs more than a record's dot products.
//   By gather: begin_group writes the ladders to scratch, scratch[v][rung][lane].

#include <bit>

#include "codegen/kernels/decoders/bit_fields.h"
#include "codegen/kernels/decoders/decoders.h"
#include "codegen/kernels/decoders/nibbles.h"

namespace cortiq::codegen {
namespace {

constexpr unsigned kRungs = 32;
constexpr unsigned kCodesPerWord = 6;
constexpr unsigned kCodeBits = 5;
constexpr unsigned kKeptEvery = 4; ///< with as many blends as that costs products are fewest

/// The ladder on top of a decoder of levels.
template <class Levels>
class WithLadder : public Levels {
public:
  WithLadder(Emit& e, const KernelSpec& spec, formats::R16Format format, bool zero_rung)
      : Levels(e, spec, std::move(format)), zero_rung_(zero_rung) {}

  void begin_group(Address group, Address scratch, unsigned vectors) override {
    Emit& e = this->e_;
    scratch_ = scratch;
    kept_.assign(vectors, {});
    steps_.assign(vectors, {});
    for (unsigned v = 0; by_bits() && v < vectors; ++v) {
      Value rung = e.load(e.f32(), this->unit(group, this->format_.header_field("lo"), 0, v));
      steps_[v] = e.load(e.f32(), this->unit(group, this->format_.header_field("step"), 0, v));
      for (unsigned c = 0; c < kRungs; ++c) {
        if (c % kKeptEvery == 0)
          kept_[v].push_back(rung);
        rung = e.mul(rung, steps_[v]);
      }
    }
    for (unsigned v = 0; !by_bits() && v < vectors; ++v) {
      Value rung = e.load(e.f32(), this->unit(group, this->format_.header_field("lo"), 0, v));
      Value step = e.load(e.f32(), this->unit(group, this->format_.header_field("step"), 0, v));
      if (zero_rung_)
        e.store(e.splat_f32(0), rung_address(v, 0));
      for (unsigned c = zero_rung_; c < kRungs; ++c) {
        e.store(rung, rung_address(v, c));
        if (c + 1 < kRungs)
          rung = e.mul(rung, step);
      }
    }
  }

  int64_t header_words_offset() const override {
    return int64_t(this->rows_) * this->format_.header_field("codes").offset;
  }
  int64_t header_words_stride() const override { return int64_t(this->rows_) * 4; }
  void begin_iteration(Address header_words, unsigned vectors) override {
    Emit& e = this->e_;
    words_.clear();
    for (unsigned v = 0; v < vectors; ++v)
      words_.push_back(e.load(e.i32(), header_words + int64_t(v) * e.vector_bytes()));
  }

  Value scale(const Record& r, unsigned v, unsigned) override {
    Emit& e = this->e_;
    if (by_bits())
      return chosen_by_bits(r, v);
    // index of scratch[v][code][lane], in floats: code * lanes + lane
    const unsigned log2_lanes = unsigned(std::countr_zero(e.lanes())), from = kCodeBits * r.phase;
    Value code = from < log2_lanes   ? e.shl(words_[v], log2_lanes - from)
                 : from > log2_lanes ? e.shr_u(words_[v], from - log2_lanes)
                                     : words_[v];
    code = e.bit_and(code, e.splat_i32(int32_t((kRungs - 1) << log2_lanes)));
    std::vector<int32_t> lane(e.lanes());
    for (unsigned l = 0; l < e.lanes(); ++l)
      lane[l] = int32_t(l);
    Value index = e.bit_or(code, e.lanes_i32(lane));
    return e.gather_f32(rung_address(v, 0), index, 4);
  }

private:
  /// A first rung of 0 is no start of a chain.
  bool by_bits() const { return !zero_rung_ && this->e_.lanes() == 16; }

  Value chosen_by_bits(const Record& r, unsigned v) {
    Emit& e = this->e_;
    Value code = r.phase ? e.shr_u(words_[v], kCodeBits * r.phase) : words_[v];
    std::vector<Value> left = kept_[v];
    for (uint32_t bit = kKeptEvery; left.size() > 1; bit *= 2) {
      for (size_t i = 0; i < left.size() / 2; ++i)
        left[i] = e.select_bits(code, bit, left[2 * i + 1], left[2 * i]);
      left.resize(left.size() / 2);
    }
    Value rung = left[0];
    for (uint32_t bit = kKeptEvery / 2; bit > 0; bit /= 2)
      for (uint32_t i = 0; i < bit; ++i)
        rung = e.mul_bits(code, bit, rung, steps_[v]);
    return rung;
  }

  Address rung_address(unsigned v, unsigned rung) const {
    return scratch_ + (int64_t(v) * kRungs + rung) * this->e_.vector_bytes();
  }

  bool zero_rung_;
  Address scratch_;
  std::vector<std::vector<Value>> kept_; ///< by vector: rungs 0, kKeptEvery, …
  std::vector<Value> steps_, words_;
};

class Q4tpDecoder final : public WithLadder<NibbleHalves> {
public:
  using WithLadder::WithLadder;

  Geometry geometry() const override {
    Geometry g;
    g.umax = 15;
    g.zero_point = 8;
    g.unroll = kCodesPerWord;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override { return nibbles(r, v, step); }
  bool has_high_levels() const override { return true; }
  Value high_levels(const Record& r, unsigned v, unsigned step) override { return nibbles_in_place(r, v, step); }
};

class Q2tpDecoder final : public WithLadder<BitFields> {
public:
  Q2tpDecoder(Emit& e, const KernelSpec& spec, formats::R16Format format)
      : WithLadder(e, spec, std::move(format), true), affine_(spec.codec == formats::CodecId::kQ2TPAffine) {}

  Geometry geometry() const override {
    Geometry g;
    g.umax = affine_ ? 3 : 6;
    g.zero_point = affine_ ? 1 : 3;
    g.unroll = kCodesPerWord;
    return g;
  }
  Value levels(const Record& r, unsigned v, unsigned step) override {
    return codes(r, format_.field("qs"), v, step, 2, affine_ ? 0 : 1);
  }
  Value scale(const Record& r, unsigned v, unsigned span) override {
    Value rung = WithLadder::scale(r, v, span);
    return affine_ ? rung : e_.mul(rung, e_.splat_f32(0.5f));
  }

private:
  bool affine_;
};

} // namespace

std::unique_ptr<Decoder> make_q4tp_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q4tpDecoder>(e, spec, std::move(format), false);
}
std::unique_ptr<Decoder> make_q2tp_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q2tpDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
