// The materialised path of a matrix product: what the decoder gives for a row group is written down once a call, and
// the core of the arm multiplies all tokens by that.
//
// Data: a panel in scratch, which has the form of a packed row group of an imagined codec:
//   header    f32 row scale[rows]                      where the codec has one scale a row
//   exact     a record of 32 weights: f32 w[32][rows]
//   fast      a record of 32 weights: levels[8][rows][4], f32 scale[spans][rows], minimum[spans][rows]
// Levels that the target's dot product takes 128 higher are written so. The decoder of that codec only loads; the cores
// of both arms take it like any other, so the products and the order of the sums are theirs, and a row's result has the
// same bits on either path.
//   sums      f32[tokens][rows]: the core serves a few tokens at once, and the last of those may be beyond the call's
// Pseudocode:
//   panel = decode(group)
//   for each few tokens: sums = core(panel, activations)
//   for each token: out = sums [+ bias] [+ residual]

#include "codegen/kernels/panel_core.h"

#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {
namespace {

using formats::KernelArgs;

constexpr unsigned kGroup = 32;   // weights of a panel's record
constexpr unsigned kSteps = 8;    // fours of weights in it
constexpr unsigned kUnrolled = 2; // records an iteration

/// Of all row groups; a short one has fewer rows.
constexpr int64_t kSumBytes = 64;

class PanelDecoder final : public Decoder {
public:
  PanelDecoder(Emit& e, const KernelSpec& spec, const formats::R16Format& format, const Decoder& of, bool is_float,
               unsigned span)
      : Decoder(e, spec, format), geometry_(of.geometry()), order_(of.step_order(0)), spans_(kGroup / span) {
    geometry_.block = kGroup;
    geometry_.unroll = kUnrolled;
    geometry_.is_float = is_float;
  }

  Geometry geometry() const override { return geometry_; }
  std::vector<unsigned> step_order(unsigned) const override { return order_; }
  Value levels(const Record& r, unsigned v, unsigned step) override { return e_.load(e_.i8(), number(r, v, step)); }
  Value raised_levels(const Record& r, unsigned v, unsigned step) override { return levels(r, v, step); }
  Value scale(const Record& r, unsigned v, unsigned span) override {
    return e_.load(e_.f32(), number(r, v, kSteps + span));
  }
  Value minimum(const Record& r, unsigned v, unsigned span) override {
    return e_.load(e_.f32(), number(r, v, kSteps + spans_ + span));
  }
  Value row_scale(Address group, unsigned v) override {
    return e_.load(e_.f32(), group + int64_t(v) * e_.vector_bytes());
  }
  Value weight(const Record& r, unsigned v, unsigned i) override { return e_.load(e_.f32(), number(r, v, i)); }

private:
  /// Number `n` of the record for the rows of vector v; each has four bytes a row.
  Address number(const Record& r, unsigned v, unsigned n) const {
    return r.at + int64_t(n) * rows_ * 4 + int64_t(v) * e_.vector_bytes();
  }

  Geometry geometry_;
  std::vector<unsigned> order_;
  const unsigned spans_;
};

} // namespace

PanelCore::PanelCore(CoreContext& c, Value args, Value scratch)
    : c_(c), e_(c.e), g_(c.geometry), fast_(c.spec.arm == Arm::kFast), span_(g_.row_scale ? kGroup : g_.span),
      row_bytes_(int64_t(c.vectors) * c.e.vector_bytes()), spec_(c.spec),
      tokens_(e_.load_index(args, offsetof(KernelArgs, tokens))),
      act_stride_(e_.load_index(args, offsetof(KernelArgs, act_stride))),
      out_stride_(e_.load_index(args, offsetof(KernelArgs, out_stride))) {
  if (c.spec.residual)
    residual_stride_ = e_.load_index(args, offsetof(KernelArgs, residual_stride));
  spec_.rows = c.vectors * e_.lanes();
  const unsigned spans = g_.row_scale ? 0 : kGroup / span_;
  format_.block = kGroup;
  format_.blocks = (c.spec.k + kGroup - 1) / kGroup;
  format_.header_bytes = g_.row_scale ? 4 : 0;
  format_.block_bytes = 4 * (fast_ ? kSteps + spans * (g_.has_min ? 2 : 1) : kGroup);
  format_.tensor_bytes = 0;
  decoder_ = std::make_unique<PanelDecoder>(e_, spec_, format_, c.decoder, !fast_, span_);
  sums_ = e_.offset(scratch, int64_t(formats::kKernelScratchBytes));
  panel_ = e_.offset(sums_, int64_t(formats::many_token_sums_bytes(c.spec.tokens)));
}

void PanelCore::run(Address group, const SumsCore::Output& output) {
  decode(group);
  multiply();
  epilogue(output);
}

//--- weights ----------------------------------------------------------------------------------------------------------

void PanelCore::decode(Address group) {
  for (unsigned v = 0; v < c_.vectors && g_.row_scale; ++v)
    e_.store(c_.decoder.row_scale(group, v), {panel_, int64_t(v) * e_.vector_bytes()});
  // The counter counts weights.
  k_loop(c_, group, g_.block, {}, [&](const RecordPlace& place, std::vector<Value>) {
    fast_ ? decode_codes(place) : decode_floats(place);
    return std::vector<Value>();
  });
}

void PanelCore::decode_codes(const RecordPlace& place) {
  const int64_t record = int64_t(format_.block_bytes) * spec_.rows; // bytes of 32 weights
  const Address at{place.index ? e_.offset(panel_, place.index, record / kGroup) : panel_,
                   int64_t(spec_.rows) * format_.header_bytes + place.static_index / kGroup * record};
  const bool raised = takes_raised_levels(c_, span_);
  const unsigned steps = unsigned((place.weights + 3) / 4), spans = unsigned((place.weights + span_ - 1) / span_);
  const unsigned a_group = kGroup / span_;
  for (unsigned s = 0; s < spans; ++s) {
    prefetch_part(c_, place, s, spans);
    const Address group = at + s / a_group * record;
    for (unsigned step_in_span : c_.decoder.step_order(s)) {
      const unsigned step = s * (span_ / 4) + step_in_span;
      for (unsigned v = 0; v < c_.vectors && step < steps; ++v)
        e_.store(raised ? c_.decoder.raised_levels(place.record, v, step) : c_.decoder.levels(place.record, v, step),
                 group + step % kSteps * row_bytes_ + int64_t(v) * e_.vector_bytes());
    }
    for (unsigned v = 0; v < c_.vectors && !g_.row_scale; ++v) {
      const Address scale = group + (kSteps + s % a_group) * row_bytes_ + int64_t(v) * e_.vector_bytes();
      e_.store(c_.decoder.scale(place.record, v, s), scale);
      if (g_.has_min)
        e_.store(c_.decoder.minimum(place.record, v, s), scale + a_group * row_bytes_);
    }
  }
}

void PanelCore::decode_floats(const RecordPlace& place) {
  const Address at{place.index ? e_.offset(panel_, place.index, row_bytes_) : panel_,
                   int64_t(spec_.rows) * format_.header_bytes + place.static_index * row_bytes_};
  for_each_weight(c_, place, [&](unsigned i, const std::vector<Value>& w) {
    for (unsigned v = 0; v < c_.vectors; ++v)
      e_.store(w[v], at + i * row_bytes_ + int64_t(v) * e_.vector_bytes());
  });
}

//--- products ---------------------------------------------------------------------------------------------------------

void PanelCore::multiply() {
  const unsigned at_once = tokens_at_once(e_);
  CoreContext c{e_, spec_,      *decoder_, decoder_->geometry(), format_, c_.vectors,
                {}, c_.scratch, c_.dot4,   c_.signed_dot4,       0};
  e_.loop(e_.index(0), tokens_, at_once, {c_.tokens[0]}, [&](Value token, const std::vector<Value>& in) {
    c.tokens = {in[0]};
    for (unsigned t = 1; t < at_once; ++t)
      c.tokens.push_back(e_.offset(in[0], act_stride_, t));
    const Sums sums = fast_ ? fast_core(c, {panel_, 0}) : exact_core(c, {panel_, 0});
    Value to = e_.offset(sums_, token, kSumBytes);
    for (unsigned t = 0; t < at_once; ++t)
      for (unsigned v = 0; v < c_.vectors; ++v)
        e_.store(sums[t * c_.vectors + v], {to, t * kSumBytes + int64_t(v) * e_.vector_bytes()});
    return std::vector<Value>{e_.offset(in[0], act_stride_, at_once)};
  });
}

void PanelCore::epilogue(const SumsCore::Output& output) {
  std::vector<Value> carried = {output.out};
  if (output.residual)
    carried.push_back(output.residual);
  e_.loop(e_.index(0), tokens_, 1, carried, [&](Value token, const std::vector<Value>& in) {
    Value from = e_.offset(sums_, token, kSumBytes);
    for (unsigned v = 0; v < c_.vectors; ++v) {
      const int64_t disp = int64_t(v) * e_.vector_bytes();
      const unsigned lanes = std::min(c_.spec.rows - v * e_.lanes(), e_.lanes());
      Value y = e_.load(e_.f32(), {from, disp});
      if (output.bias)
        y = e_.add(y, e_.load(e_.f32(), {output.bias, disp}, lanes));
      if (output.residual)
        y = e_.add(y, e_.load(e_.f32(), {in[1], disp}, lanes));
      e_.store(y, {in[0], disp}, lanes);
    }
    std::vector<Value> next = {e_.offset(in[0], out_stride_, 1)};
    if (output.residual)
      next.push_back(e_.offset(in[1], residual_stride_, 1));
    return next;
  });
}

} // namespace cortiq::codegen
