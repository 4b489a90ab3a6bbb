// The core of the `fast` arm: int8 activations in groups of 32 (q8a), integer sums exact within a scale span, float
// sums over K in order.
//
// Data: weights as the decoder gives them, a 32-bit lane a row; activations as kernel_abi.h's q8a record.
// Register roles, a span of 32 or 16 weights, T tokens x V row vectors:
//   level[v]      weights 4s..4s+3 of 8 rows, u8 (or |w|, with the sign moved onto the activations)
//   x             four activation codes in every lane
//   pairs[t][v]   i16 pair sums; several steps fit before they could leave i16
//   sum[t][v]     i32 sums of the span
//   acc[t][v]     f32 sums over K: carried in registers while T*V <= 4, else in scratch
// Pseudocode:
//   for each record, for each span:
//     for each step s: pairs[t][v] += dot2(level[v], x[t]);  sum[t][v] = pair_add(pairs)
//     sum[t][v] -= zero_point * sum_of_codes[t]
//     acc[t][v] = fma(f32(sum) * x_scale[t], scale[v], acc);  acc = fma(x_msum[t], minimum[v], acc)
// On targets with an int8 dot instruction sum[t][v] starts at -zero_point * sum_of_codes[t] and each step is one dot4;
// signed levels are offset by 128 there, unless the instruction takes them as they are, and count as a zero point of
// 128. One token's starts are made once a call, for all row groups. Where a decoder has nibbles in the upper halves of
// bytes, the only token's products of those are summed where they stand, sixteen times as large, and moved down once.
// Integer sums are exact and float steps the same, so all targets agree bit for bit.

#include <algorithm>
#include <bit>

#include "codegen/kernels/core.h"
#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {
namespace {

constexpr unsigned kGroup = 32;         // activations that share a scale
constexpr int64_t kIndexStep = 4;       // the counter advances by 4 a group: codes are at index * 8, scales at index
constexpr unsigned kMaxInRegisters = 4; // of 16 registers; twice as many of 32
constexpr unsigned kHighBits = 4;       // below the upper nibble of a byte
constexpr unsigned kHigh = 1u << kHighBits;

class FastCore {
public:
  FastCore(CoreContext& c) : c_(c), e_(c.e), g_(c.geometry), act_(formats::q8_act_layout(c.spec.k)) {
    sums_ = unsigned(c.tokens.size()) * c.vectors;
    raised_ = g_.is_signed && !c.signed_dot4 ? 128 : 0;
    in_memory_ = e_.lanes() < 16 && sums_ > (e_.lanes() == 8 ? 1 : 2) * kMaxInRegisters;
  }

  Sums run(Address group) {
    Value zero = e_.splat_f32(0);
    std::vector<Value> carried;
    for (unsigned i = 0; i < sums_; ++i) {
      if (in_memory_)
        e_.store(zero, slot(i));
      else
        carried.push_back(zero);
    }
    carried = k_loop(c_, group, kIndexStep * (g_.block / kGroup), std::move(carried),
                     [&](const RecordPlace& place, std::vector<Value> acc) { return record(place, std::move(acc)); });
    Sums sums(sums_);
    for (unsigned i = 0; i < sums_; ++i) {
      sums[i] = in_memory_ ? e_.load(e_.f32(), slot(i)) : carried[i];
      if (g_.row_scale)
        sums[i] = e_.mul(sums[i], row_scale(group, i % c_.vectors));
    }
    return sums;
  }

  void make_starts(Address at, int64_t room) {
    const unsigned span = sum_span();
    const bool halves = span == kGroup / 2;
    const int64_t bytes = int64_t(act_.groups) * (halves ? 8 : 4), vector = e_.vector_bytes();
    if (c_.tokens.size() != 1 || !dot4(span) || zero_factor(span) == 0 || bytes > room)
      return;
    const Address from{c_.tokens[0], int64_t(halves ? act_.sum16 : act_.sum32)};
    const auto make = [&](Address sums, Address to, unsigned lanes) {
      e_.store(start_at(e_.load(e_.i32(), sums, lanes), zero_factor(span)), to, lanes);
    };
    const int64_t whole = bytes / vector * vector;
    if (whole != 0)
      e_.loop(e_.index(0), e_.index(whole), vector, {}, [&](Value i, const std::vector<Value>&) {
        make({e_.offset(from.base, i, 1), from.disp}, {e_.offset(at.base, i, 1), at.disp}, 0);
        return std::vector<Value>();
      });
    if (whole != bytes)
      make(from + whole, at + whole, unsigned(bytes - whole) / 4);
    c_.starts = at;
  }

private:
  Address slot(unsigned i) const { return c_.scratch + int64_t(i) * e_.vector_bytes(); }

  Value row_scale(Address group, unsigned v) {
    row_scales_.resize(c_.vectors);
    if (!row_scales_[v])
      row_scales_[v] = c_.decoder.row_scale(group, v);
    return row_scales_[v];
  }

  /// Address in token t's record: `per_group` bytes a group of 32, in array `array`, `extra` bytes further.
  Address activation(const RecordPlace& place, size_t t, int64_t array, int64_t per_group, int64_t extra) const {
    return activation(c_.tokens[t], place, array, per_group, extra);
  }
  Address activation(Value base, const RecordPlace& place, int64_t array, int64_t per_group, int64_t extra) const {
    const int64_t scale = per_group / kIndexStep; // bytes per unit of the counter
    const int64_t disp = array + place.static_index * scale + extra;
    return {place.index ? e_.offset(base, place.index, scale) : base, disp};
  }

  std::vector<Value> record(const RecordPlace& place, std::vector<Value> acc) {
    const unsigned span = sum_span();
    const unsigned all_steps = unsigned((place.weights + 3) / 4), spans = unsigned((place.weights + span - 1) / span);
    for (unsigned s = 0; s * span < place.weights; ++s) {
      prefetch_part(c_, place, s, spans);
      std::vector<Value> sums = high_in_place(span) ? span_sums_in_place(place, s, span, all_steps)
                                : dot4(span)        ? span_sums_dot4(place, s, span, all_steps)
                                                    : span_sums(place, s, span, all_steps);
      finish_span(place, s, span, sums, acc);
    }
    return acc;
  }

  /// Whether dot4 serves: signed levels need the sum of a span's codes there, which exists from 16 weights on.
  bool dot4(unsigned span) const { return c_.dot4 && (span >= kGroup / 2 || raised_ == 0); }

  /// Weights that are summed as integers.
  unsigned sum_span() const { return g_.row_scale ? kGroup : g_.span; }

  /// Whether upper nibbles are multiplied where they stand: with several tokens that takes more than it saves.
  bool high_in_place(unsigned span) const {
    return c_.tokens.size() == 1 && dot4(span) && !c_.signed_dot4 && c_.decoder.has_high_levels();
  }

  /// By dot4, what a span's sum of codes is multiplied by for the zero point.
  unsigned zero_factor(unsigned span) const { return g_.is_signed ? raised_ : g_.zero_point; }

  /// The steps of span s that exist, in the decoder's order, counted in the record.
  std::vector<unsigned> steps_of(unsigned s, unsigned span, unsigned all_steps) const {
    std::vector<unsigned> steps;
    for (unsigned step : c_.decoder.step_order(s))
      if (s * span / 4 + step < all_steps)
        steps.push_back(s * span / 4 + step);
    return steps;
  }

  /// Four activation codes of token t in every lane.
  Value codes(const RecordPlace& place, size_t t, unsigned step) {
    const Address at = activation(c_.turned ? c_.turned : c_.tokens[t], place, 0, kGroup, 4 * step);
    return e_.bitcast(e_.load_splat_i32(at), e_.i8());
  }

  /// Integer sums of one span, zero point included, by dot4.
  std::vector<Value> span_sums_dot4(const RecordPlace& place, unsigned s, unsigned span, unsigned all_steps) {
    std::vector<Value> sums(sums_);
    for (size_t t = 0; t < c_.tokens.size(); ++t) {
      Value start_of_token = start(place, t, s, span);
      for (unsigned v = 0; v < c_.vectors; ++v)
        sums[t * c_.vectors + v] = start_of_token;
    }
    for (unsigned step : steps_of(s, span, all_steps)) {
      std::vector<Value> level(c_.vectors);
      for (unsigned v = 0; v < c_.vectors; ++v)
        level[v] = raised_ ? c_.decoder.raised_levels(place.record, v, step) : c_.decoder.levels(place.record, v, step);
      for (size_t t = 0; t < c_.tokens.size(); ++t) {
        Value x = codes(place, t, step);
        for (unsigned v = 0; v < c_.vectors; ++v) {
          Value& sum = sums[t * c_.vectors + v];
          if (g_.is_signed && !raised_)
            sum = e_.signed_dot4(sum, level[v], x);
          else
            sum = e_.dot4(sum, level[v], x, raised_ ? 255 : g_.umax);
        }
      }
    }
    return sums;
  }

  /// The same of the only token with the upper nibbles where they stand.
  std::vector<Value> span_sums_in_place(const RecordPlace& place, unsigned s, unsigned span, unsigned all_steps) {
    std::vector<Value> sums(sums_, start(place, 0, s, span)), high_sums(sums_, e_.splat_i32(0));
    for (unsigned step : steps_of(s, span, all_steps)) {
      const bool high = step % (kGroup / 4) >= kGroup / 8;
      Value x = codes(place, 0, step);
      for (unsigned v = 0; v < c_.vectors; ++v)
        if (high)
          high_sums[v] = e_.dot4(high_sums[v], c_.decoder.high_levels(place.record, v, step), x, kHigh * g_.umax);
        else
          sums[v] = e_.dot4(sums[v], c_.decoder.levels(place.record, v, step), x, g_.umax);
    }
    for (unsigned v = 0; v < c_.vectors; ++v)
      sums[v] = e_.add(sums[v], e_.shr_s(high_sums[v], kHighBits));
    return sums;
  }

  /// Integer sums of one span, without zero point, by pair sums.
  std::vector<Value> span_sums(const RecordPlace& place, unsigned s, unsigned span, unsigned all_steps) {
    // Pair sums stay within i16 for so many steps.
    const unsigned chain = std::max(1u, 32767u / (g_.umax * 254u));
    std::vector<Value> pairs(sums_), sums(sums_);
    unsigned in_chain = 0;
    const std::vector<unsigned> steps = steps_of(s, span, all_steps);
    for (size_t n = 0; n < steps.size(); ++n) {
      const unsigned step = steps[n];
      std::vector<Value> level(c_.vectors), magnitude(c_.vectors);
      for (unsigned v = 0; v < c_.vectors; ++v) {
        level[v] = c_.decoder.levels(place.record, v, step);
        magnitude[v] = g_.is_signed ? e_.abs(level[v]) : level[v];
      }
      for (size_t t = 0; t < c_.tokens.size(); ++t) {
        Value x = codes(place, t, step);
        for (unsigned v = 0; v < c_.vectors; ++v) {
          Value product = e_.dot2(magnitude[v], g_.is_signed ? e_.sign(x, level[v]) : x, g_.umax);
          Value& p = pairs[t * c_.vectors + v];
          p = p ? e_.add(p, product) : product;
        }
      }
      if (++in_chain == chain || n + 1 == steps.size()) {
        for (unsigned i = 0; i < sums_; ++i) {
          Value wide = e_.pair_add(pairs[i]);
          sums[i] = sums[i] ? e_.add(sums[i], wide) : wide;
          pairs[i] = {};
        }
        in_chain = 0;
      }
    }
    return sums;
  }

  void finish_span(const RecordPlace& place, unsigned s, unsigned span, std::vector<Value>& sums,
                   std::vector<Value>& acc) {
    const int64_t group = s * span / kGroup; // activation group inside the record
    std::vector<Value> scale(c_.vectors), minimum(c_.vectors);
    for (unsigned v = 0; v < c_.vectors && !g_.row_scale; ++v) {
      scale[v] = c_.decoder.scale(place.record, v, s);
      if (g_.has_min)
        minimum[v] = c_.decoder.minimum(place.record, v, s);
    }
    for (size_t t = 0; t < c_.tokens.size(); ++t) {
      Value zero = g_.zero_point && !dot4(span) ? zero_term(place, t, s, span, g_.zero_point) : Value();
      Value x_scale = e_.load_splat_f32(activation(place, t, act_.scale, 4, 4 * group));
      Value x_msum = g_.has_min ? scaled_sum(place, t, s, span, x_scale) : Value();
      for (unsigned v = 0; v < c_.vectors; ++v) {
        const unsigned i = unsigned(t) * c_.vectors + v;
        Value sum = zero ? e_.sub(sums[i], zero) : sums[i];
        Value a = in_memory_ ? e_.load(e_.f32(), slot(i)) : acc[i];
        Value f = e_.to_f32(sum);
        a = g_.row_scale ? e_.fma(f, x_scale, a) : e_.fma(e_.mul(f, x_scale), scale[v], a);
        if (g_.has_min)
          a = e_.fma(x_msum, minimum[v], a);
        if (in_memory_)
          e_.store(a, slot(i));
        else
          acc[i] = a;
      }
    }
  }

  /// Sum of the span's activation codes, in every lane.
  Value code_sum(const RecordPlace& place, size_t t, unsigned s, unsigned span) {
    return e_.load_splat_i32(span == kGroup / 2 ? activation(place, t, act_.sum16, 8, 4 * int64_t(s))
                                                : activation(place, t, act_.sum32, 4, 4 * int64_t(s)));
  }

  /// zero_point * sum of the span's activation codes.
  Value zero_term(const RecordPlace& place, size_t t, unsigned s, unsigned span, unsigned zero_point) {
    return times(code_sum(place, t, s, span), zero_point);
  }
  Value times(Value sum, unsigned factor) {
    if (factor == 1)
      return sum;
    return std::has_single_bit(factor) ? e_.shl(sum, unsigned(std::countr_zero(factor)))
                                       : e_.mul(sum, e_.splat_i32(int32_t(factor)));
  }

  /// What a span's sum starts at by dot4, in every lane.
  Value start(const RecordPlace& place, size_t t, unsigned s, unsigned span) {
    if (zero_factor(span) == 0)
      return e_.splat_i32(0);
    if (c_.starts.base)
      return e_.load_splat_i32(
          activation(c_.starts.base, place, c_.starts.disp, 4 * int64_t(kGroup / span), 4 * int64_t(s)));
    return start_at(code_sum(place, t, s, span), zero_factor(span));
  }
  Value start_at(Value code_sum, unsigned factor) { return e_.sub(e_.splat_i32(0), times(code_sum, factor)); }

  /// Activation scale times the sum of the span's codes: what minima are multiplied by.
  Value scaled_sum(const RecordPlace& place, size_t t, unsigned s, unsigned span, Value x_scale) {
    if (span == kGroup)
      return e_.load_splat_f32(activation(place, t, act_.msum, 4, 4 * int64_t(s)));
    return e_.mul(e_.to_f32(code_sum(place, t, s, span)), x_scale);
  }

  CoreContext& c_;
  Emit& e_;
  const Geometry g_;
  const formats::Q8ActLayout act_;
  unsigned sums_;
  unsigned raised_; // what dot4 needs added to signed levels
  bool in_memory_;
  std::vector<Value> row_scales_;
};

} // namespace

// They need the sum of a span's codes, which exists from 16 weights on.
bool takes_raised_levels(const CoreContext& c, unsigned span) {
  return c.geometry.is_signed && c.dot4 && !c.signed_dot4 && span >= kGroup / 2;
}

Sums fast_core(CoreContext& c, Address group) {
  return FastCore(c).run(group);
}

void make_starts(CoreContext& c, Address at, int64_t room) {
  FastCore(c).make_starts(at, room);
}

} // namespace cortiq::codegen
