// The core of the `wide` arm: int8 activations with one scale a record of the codec (q8k), integer sums exact within a
// record, for codecs whose spans have small integer scales, or none, under one float a record.
//
// Data: weights as the decoder gives them, a 32-bit lane a row; activations as kernel_abi.h's q8k record.
// Register roles, T tokens x V row vectors:
//   level[v]      weights 4s..4s+3 of 8 or 16 rows, u8
//   x             four activation codes in every lane
//   pairs[t][v]   i16 pair sums of a span, or sum[t][v], its i32 sums, with an int8 dot instruction
//   total[t][v]   i32 sums of the record: carried in registers while T*V <= 4, else in scratch, as acc is
//   acc[t][v]     f32 sums over K
// Pseudocode:
//   for each record:
//     low = sum over spans of minimum[s] * (sum of the span's codes)
//     total = sum over spans of scale[s] * (sum over the span of level * x)     or without scales, less zero point *
//     sum acc = fma(f32(low) * x_scale, -dmin, acc);  acc = fma(f32(total) * x_scale, d, acc)
// Pair sums of a span of 32 levels up to 15 stay in 16 bits and are multiplied by the scale as they are summed.
// Integers are exact, so all targets agree bit for bit.

#include "codegen/kernels/wide_core.h"

#include <algorithm>

#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {
namespace {

constexpr int64_t kIndexStep = 4; // the counter advances by 4 a record: scales are at index
constexpr unsigned kMaxInRegisters = 4;
constexpr unsigned kSums = 16; // codes whose sum is stored

class WideCore {
public:
  explicit WideCore(CoreContext& c)
      : c_(c), e_(c.e), g_(c.geometry), act_(formats::q8k_act_layout(c.spec.k, c.geometry.block)),
        scaled_(c.decoder.has_integer_scales()) {
    sums_ = unsigned(c.tokens.size()) * c.vectors;
    in_memory_ = sums_ > kMaxInRegisters && e_.lanes() == 8;
  }

  Sums run(Address group) {
    std::vector<Value> carried;
    for (unsigned i = 0; i < sums_; ++i) {
      if (in_memory_)
        e_.store(e_.splat_f32(0), slot(i));
      else
        carried.push_back(e_.splat_f32(0));
    }
    carried = k_loop(c_, group, kIndexStep, std::move(carried),
                     [&](const RecordPlace& place, std::vector<Value> acc) { return record(place, std::move(acc)); });
    for (unsigned i = 0; i < sums_ && in_memory_; ++i)
      carried.push_back(e_.load(e_.f32(), slot(i)));
    return carried;
  }

private:
  Address slot(unsigned i) const { return c_.scratch + int64_t(i) * e_.vector_bytes(); }
  Address total_slot(unsigned i) const { return slot(sums_ + i); }

  /// Address in token t's record: `per_record` bytes a record of weights, in array `array`, `extra` bytes further.
  Address activation(const RecordPlace& place, size_t t, int64_t array, int64_t per_record, int64_t extra) const {
    const int64_t scale = per_record / kIndexStep;
    return {place.index ? e_.offset(c_.tokens[t], place.index, scale) : c_.tokens[t],
            array + place.static_index * scale + extra};
  }

  std::vector<Value> record(const RecordPlace& place, std::vector<Value> acc) {
    if (g_.has_min)
      add_minima(place, acc);
    const unsigned spans = g_.block / g_.span;
    std::vector<Value> totals(sums_);
    for (unsigned i = 0; i < sums_; ++i)
      totals[i] = g_.zero_point ? zero_total(place, i / c_.vectors) : e_.splat_i32(0);
    keep(totals);
    for (unsigned s = 0; s < spans; ++s) {
      prefetch_part(c_, place, s, spans);
      std::vector<Value> scale(c_.vectors);
      for (unsigned v = 0; v < c_.vectors && scaled_; ++v)
        scale[v] = c_.decoder.integer_scale(place.record, v, s);
      c_.dot4 ? span_dot4(place, s, scale, totals) : span_pairs(place, s, scale, totals);
    }
    std::vector<Value> d(c_.vectors);
    for (unsigned v = 0; v < c_.vectors; ++v)
      d[v] = c_.decoder.record_scale(place.record, v);
    for (unsigned i = 0; i < sums_; ++i)
      add_float(place, i, in_memory_ ? e_.load(e_.i32(), total_slot(i)) : totals[i], d[i % c_.vectors], acc);
    return acc;
  }

  /// Puts sums down where registers do not hold them.
  void keep(std::vector<Value>& totals) {
    for (unsigned i = 0; i < sums_ && in_memory_; ++i)
      e_.store(totals[i], total_slot(i));
  }

  void add_total(unsigned i, Value more, std::vector<Value>& totals) {
    if (in_memory_)
      e_.store(e_.add(e_.load(e_.i32(), total_slot(i)), more), total_slot(i));
    else
      totals[i] = e_.add(totals[i], more);
  }

  /// acc += f32(integer) * x_scale * factor.
  void add_float(const RecordPlace& place, unsigned i, Value integer, Value factor, std::vector<Value>& acc) {
    Value x_scale = e_.load_splat_f32(activation(place, i / c_.vectors, act_.scale, 4, 0));
    Value a = in_memory_ ? e_.load(e_.f32(), slot(i)) : acc[i];
    a = e_.fma(e_.mul(e_.to_f32(integer), x_scale), factor, a);
    if (in_memory_)
      e_.store(a, slot(i));
    else
      acc[i] = a;
  }

  /// The number of each lane in both 16-bit halves.
  Value doubled(Value number) { return e_.bitcast(e_.bit_or(number, e_.shl(number, 16)), e_.i16()); }

  /// Two stored sums of codes, those from number `n` on, in every lane.
  Value code_sums(const RecordPlace& place, size_t t, unsigned n) {
    return e_.bitcast(e_.load_splat_i32(activation(place, t, act_.sums, 2 * g_.block / kSums, 2 * int64_t(n))),
                      e_.i16());
  }

  void add_minima(const RecordPlace& place, std::vector<Value>& acc) {
    std::vector<Value> low(sums_), factor(c_.vectors);
    for (unsigned s = 0; s < g_.block / g_.span; ++s)
      for (unsigned v = 0; v < c_.vectors; ++v) {
        Value minimum = doubled(c_.decoder.integer_minimum(place.record, v, s));
        for (size_t t = 0; t < c_.tokens.size(); ++t) {
          Value product = e_.mul_pairs(code_sums(place, t, s * g_.span / kSums), minimum);
          Value& sum = low[t * c_.vectors + v];
          sum = sum ? e_.add(sum, product) : product;
        }
      }
    for (unsigned v = 0; v < c_.vectors; ++v)
      factor[v] = c_.decoder.record_minimum(place.record, v);
    for (unsigned i = 0; i < sums_; ++i)
      add_float(place, i, low[i], factor[i % c_.vectors], acc);
  }

  /// Minus zero point times the sum of the record's codes.
  Value zero_total(const RecordPlace& place, size_t t) {
    Value factor = doubled(e_.splat_i32(int32_t(g_.zero_point))), sum;
    for (unsigned n = 0; n < g_.block / kSums; n += 2) {
      Value product = e_.mul_pairs(code_sums(place, t, n), factor);
      sum = sum ? e_.add(sum, product) : product;
    }
    return e_.sub(e_.splat_i32(0), sum);
  }

  Value codes(const RecordPlace& place, size_t t, unsigned step) {
    return e_.bitcast(e_.load_splat_i32(activation(place, t, 0, g_.block, 4 * step)), e_.i8());
  }

  /// Steps of span s, counted in the record, with the levels of each.
  void over_steps(const RecordPlace& place, unsigned s,
                  const std::function<void(unsigned step, const std::vector<Value>& level)>& body) {
    for (unsigned in_span : c_.decoder.step_order(s)) {
      const unsigned step = s * g_.span / 4 + in_span;
      std::vector<Value> level(c_.vectors);
      for (unsigned v = 0; v < c_.vectors; ++v)
        level[v] = c_.decoder.levels(place.record, v, step);
      body(step, level);
    }
  }

  void span_dot4(const RecordPlace& place, unsigned s, const std::vector<Value>& scale, std::vector<Value>& totals) {
    std::vector<Value> sums(sums_, e_.splat_i32(0));
    over_steps(place, s, [&](unsigned step, const std::vector<Value>& level) {
      for (unsigned i = 0; i < sums_; ++i)
        sums[i] = e_.dot4(sums[i], level[i % c_.vectors], codes(place, i / c_.vectors, step), g_.umax);
    });
    for (unsigned i = 0; i < sums_; ++i)
      add_total(i, scaled_ ? e_.mul(sums[i], scale[i % c_.vectors]) : sums[i], totals);
  }

  void span_pairs(const RecordPlace& place, unsigned s, const std::vector<Value>& scale, std::vector<Value>& totals) {
    const unsigned chain = std::max(1u, 32767u / (g_.umax * 254u)), steps = g_.span / 4;
    std::vector<Value> pairs(sums_);
    unsigned done = 0;
    over_steps(place, s, [&](unsigned step, const std::vector<Value>& level) {
      for (unsigned i = 0; i < sums_; ++i) {
        Value product = e_.dot2(level[i % c_.vectors], codes(place, i / c_.vectors, step), g_.umax);
        pairs[i] = pairs[i] ? e_.add(pairs[i], product) : product;
      }
      if (++done % chain != 0 && done != steps)
        return;
      for (unsigned i = 0; i < sums_; ++i) {
        add_total(i, scaled_ ? e_.mul_pairs(pairs[i], doubled(scale[i % c_.vectors])) : e_.pair_add(pairs[i]), totals);
        pairs[i] = {};
      }
    });
  }

  CoreContext& c_;
  Emit& e_;
  const Geometry g_;
  const formats::Q8kActLayout act_;
  const bool scaled_;
  unsigned sums_;
  bool in_memory_;
};

} // namespace

bool has_wide_form(formats::CodecId codec) {
  return codec == formats::CodecId::kQ4_K || codec == formats::CodecId::kQ5_K || codec == formats::CodecId::kQ2_0_G128;
}

Sums wide_core(CoreContext& c, Address group) {
  return WideCore(c).run(group);
}

} // namespace cortiq::codegen
