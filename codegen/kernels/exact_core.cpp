// The core of the `exact` arm: f32 activations, f32 fused multiply-add, weights decoded to f32 lanes exactly as the
// reference decode gives them (row-scaled codecs apply the scale to the finished sum).
//
// Register roles, T tokens x V row vectors: level[v] four codes of 8 rows; w[v] one weight of 8 rows; x one activation
// in every lane; acc[t][v] the sums over K, carried in registers. Pseudocode: for each record, span, step, byte j: w =
// level.j * scale [+ minimum]; acc[t][v] = fma(w[v], x[t], acc[t][v])

#include "codegen/kernels/core.h"

namespace cortiq::codegen {
namespace {

using Use = std::function<void(unsigned, const std::vector<Value>&)>;

/// The weights of span s of a record.
void span_weights(CoreContext& c, const RecordPlace& place, unsigned s, unsigned span, const Use& use) {
  Emit& e = c.e;
  const Geometry& g = c.geometry;
  std::vector<Value> scale(c.vectors), minimum(c.vectors);
  for (unsigned v = 0; v < c.vectors && !g.row_scale; ++v) {
    scale[v] = c.decoder.scale(place.record, v, s);
    if (g.has_min)
      minimum[v] = c.decoder.minimum(place.record, v, s);
  }
  for (unsigned step_in_span : c.decoder.step_order(s)) {
    const unsigned step = s * span / 4 + step_in_span;
    if (4 * step >= place.weights)
      continue;
    std::vector<Value> level(c.vectors);
    for (unsigned v = 0; v < c.vectors; ++v) {
      level[v] = c.decoder.levels(place.record, v, step);
      if (g.zero_point)
        level[v] = e.sub(level[v], e.splat_i8(int(g.zero_point)));
      level[v] = e.bitcast(level[v], e.i32());
    }
    for (unsigned j = 0; j < 4 && 4 * step + j < place.weights; ++j) {
      std::vector<Value> w(c.vectors);
      for (unsigned v = 0; v < c.vectors; ++v) {
        w[v] = e.to_f32(e.shr_s(j < 3 ? e.shl(level[v], 24 - 8 * j) : level[v], 24));
        if (g.has_min)
          w[v] = e.fma(w[v], scale[v], minimum[v]);
        else if (!g.row_scale)
          w[v] = e.mul(w[v], scale[v]);
      }
      use(4 * step + j, w);
    }
  }
}

class ExactCore {
public:
  explicit ExactCore(CoreContext& c) : c_(c), e_(c.e), g_(c.geometry) {}

  Sums run(Address group) {
    std::vector<Value> carried(c_.tokens.size() * c_.vectors, e_.splat_f32(0));
    carried = k_loop(c_, group, g_.block, std::move(carried),
                     [&](const RecordPlace& place, std::vector<Value> acc) { return record(place, std::move(acc)); });
    if (g_.row_scale)
      for (unsigned v = 0; v < c_.vectors; ++v) {
        Value d = c_.decoder.row_scale(group, v);
        for (size_t t = 0; t < c_.tokens.size(); ++t)
          carried[t * c_.vectors + v] = e_.mul(carried[t * c_.vectors + v], d);
      }
    return carried;
  }

private:
  std::vector<Value> record(const RecordPlace& place, std::vector<Value> acc) {
    for_each_weight(c_, place, [&](unsigned i, const std::vector<Value>& w) { multiply(place, i, w, acc); });
    return acc;
  }

  /// acc[t][v] += w[v] * activation i of the record.
  void multiply(const RecordPlace& place, unsigned i, const std::vector<Value>& w, std::vector<Value>& acc) {
    for (size_t t = 0; t < c_.tokens.size(); ++t) {
      Value base = place.index ? e_.offset(c_.tokens[t], place.index, 4) : c_.tokens[t];
      Value x = e_.load_splat_f32({base, 4 * (place.static_index + int64_t(i))});
      for (unsigned v = 0; v < c_.vectors; ++v)
        acc[t * c_.vectors + v] = e_.fma(w[v], x, acc[t * c_.vectors + v]);
    }
  }

  CoreContext& c_;
  Emit& e_;
  const Geometry g_;
};

} // namespace

void for_each_weight(CoreContext& c, const RecordPlace& place, const Use& use) {
  if (c.geometry.is_float) {
    prefetch_part(c, place, 0, 1);
    for (unsigned first = 0; first < place.weights; first += c.geometry.span)
      for (unsigned step : c.decoder.step_order(first / c.geometry.span))
        for (unsigned i = first + 4 * step; i < first + 4 * step + 4 && i < place.weights; ++i) {
          std::vector<Value> w(c.vectors);
          for (unsigned v = 0; v < c.vectors; ++v)
            w[v] = c.decoder.weight(place.record, v, i);
          use(i, w);
        }
    return;
  }
  const unsigned span = c.geometry.row_scale ? 32 : c.geometry.span;
  const unsigned spans = unsigned((place.weights + span - 1) / span);
  for (unsigned s = 0; s < spans; ++s) {
    prefetch_part(c, place, s, spans);
    span_weights(c, place, s, span, use);
  }
}

Sums exact_core(CoreContext& c, Address group) {
  return ExactCore(c).run(group);
}

} // namespace cortiq::codegen
