// Decoder of q4tp: w = (q - 8) * ladder[code]. A row's ladder is 32 f32: rung 0 = 2^lo, each next one the previous
// times 2^step, by repeated multiplication (the chain's rounding is the codec's definition). Both starting values are
// stored in the row header, so that no exponential is needed here.
//
// Data: header lo f32, step f32, codes u32[ceil(blocks/6)] (six 5-bit codes a word); record: 16 bytes of nibbles as
// halves. begin_group writes the ladders of a row group to scratch, rung by rung, lane by lane; scale() gathers from
// there:
//   scratch[v][rung][lane]

#include "codegen/kernels/decoders/decoders.h"
#include "codegen/kernels/decoders/nibbles.h"

namespace cortiq::codegen {
namespace {

constexpr unsigned kRungs = 32;
constexpr unsigned kCodesPerWord = 6;
constexpr unsigned kCodeBits = 5;

class Q4tpDecoder final : public NibbleHalves {
public:
  using NibbleHalves::NibbleHalves;

  Geometry geometry() const override {
    Geometry g;
    g.umax = 15;
    g.zero_point = 8;
    g.unroll = kCodesPerWord;
    return g;
  }

  void begin_group(Address group, Address scratch, unsigned vectors) override {
    scratch_ = scratch;
    for (unsigned v = 0; v < vectors; ++v) {
      Value rung = e_.load(e_.f32(), unit(group, format_.header_field("lo"), 0, v));
      Value step = e_.load(e_.f32(), unit(group, format_.header_field("step"), 0, v));
      for (unsigned c = 0; c < kRungs; ++c) {
        if (c > 0)
          rung = e_.mul(rung, step);
        e_.store(rung, scratch + (int64_t(v) * kRungs + c) * e_.vector_bytes());
      }
    }
  }

  int64_t header_words_offset() const override { return int64_t(rows_) * format_.header_field("codes").offset; }
  int64_t header_words_stride() const override { return int64_t(rows_) * 4; }
  void begin_iteration(Address header_words, unsigned vectors) override {
    words_.clear();
    for (unsigned v = 0; v < vectors; ++v)
      words_.push_back(e_.load(e_.i32(), header_words + int64_t(v) * e_.vector_bytes()));
  }

  Value levels(const Record& r, unsigned v, unsigned step) override { return nibbles(r, v, step); }

  Value scale(const Record& r, unsigned v, unsigned) override {
    Value code = words_[v];
    if (r.phase > 0)
      code = e_.shr_u(code, kCodeBits * r.phase);
    code = e_.bit_and(code, e_.splat_i32(kRungs - 1));
    // index of scratch[v][code][lane], in floats: code * lanes + lane
    unsigned log2_lanes = e_.lanes() == 16 ? 4 : 3;
    std::vector<int32_t> lane(e_.lanes());
    for (unsigned l = 0; l < e_.lanes(); ++l)
      lane[l] = int32_t(l);
    Value index = e_.bit_or(e_.shl(code, log2_lanes), e_.lanes_i32(lane));
    return e_.gather_f32(scratch_ + int64_t(v) * kRungs * e_.vector_bytes(), index, 4);
  }

private:
  Address scratch_;
  std::vector<Value> words_;
};

} // namespace

std::unique_ptr<Decoder> make_q4tp_decoder(Emit& e, const KernelSpec& spec, formats::R16Format format) {
  return std::make_unique<Q4tpDecoder>(e, spec, std::move(format));
}

} // namespace cortiq::codegen
