#include "codegen/kernels/chunk_core.h"

#include <algorithm>

namespace cortiq::codegen {

ChunkCore::ChunkCore(CoreContext& c, Value args, Value scratch, int64_t scale_bytes)
    : SumsCore(c, args), act_(formats::q8_act_layout(c.spec.k)), stride_(int64_t(act_.bytes)),
      span_(g_.row_scale ? kGroup : g_.span), spans_(kGroup / span_),
      panel_bytes_(kLevelBytes + (g_.row_scale ? 0 : scale_bytes * spans_ * (g_.has_min ? 2 : 1))),
      panel_stride_(int64_t(act_.groups) * panel_bytes_), scratch_(scratch) {}

void ChunkCore::run(Value weights, int64_t group_bytes) {
  decode(weights, group_bytes);
  multiply();
}

//--- weights ----------------------------------------------------------------------------------------------------------

void ChunkCore::decode(Value weights, int64_t group_bytes) {
  e_.loop(e_.index(0), groups_, 1, {weights, panel_}, [&](Value, const std::vector<Value>& in) {
    const Address group{in[0], 0};
    c_.decoder.begin_group(group, {scratch_, 0}, c_.vectors);
    k_loop(c_, group, 4 * (g_.block / kGroup), {}, [&](const RecordPlace& place, std::vector<Value>) {
      decode_record(place, in[1]);
      return std::vector<Value>();
    });
    return std::vector<Value>{e_.offset(in[0], group_bytes), e_.offset(in[1], panel_stride_)};
  });
}

void ChunkCore::decode_record(const RecordPlace& place, Value panels) {
  // The counter advances by 4 a group.
  Value panel = place.index ? e_.offset(panels, place.index, panel_bytes_ / 4) : panels;
  const int64_t first = place.static_index / 4 * panel_bytes_;
  const unsigned steps = unsigned((place.weights + 3) / 4), spans = unsigned((place.weights + span_ - 1) / span_);
  auto at = [&](unsigned span) { return Address{panel, first + span / spans_ * panel_bytes_}; };
  for (unsigned s = 0; s < spans; ++s) {
    prefetch_part(c_, place, s, spans);
    for (unsigned step_in_span : c_.decoder.step_order(s)) {
      const unsigned step = s * (span_ / 4) + step_in_span;
      for (unsigned v = 0; v < c_.vectors; ++v) {
        // Nothing may meet the zeros behind the activations but numbers.
        Value level = step < steps ? c_.decoder.levels(place.record, v, step) : e_.splat_i8(0);
        if (step < steps && !g_.is_signed && g_.zero_point)
          level = e_.sub(level, e_.splat_i8(int(g_.zero_point)));
        put_levels(at(s), v, step % (kGroup / 4), level);
      }
    }
    for (unsigned v = 0; v < c_.vectors && !g_.row_scale; ++v) {
      put_scale(at(s), v, s % spans_, c_.decoder.scale(place.record, v, s));
      if (g_.has_min)
        put_minimum(at(s), v, s % spans_, c_.decoder.minimum(place.record, v, s));
    }
  }
}

//--- products ---------------------------------------------------------------------------------------------------------

void ChunkCore::clear_sums() {
  const Cut by = cut();
  e_.loop(e_.index(0), groups_, by.row_groups, {}, [&](Value group, const std::vector<Value>&) {
    Value groups = e_.offset(sums_, group, sums_bytes_);
    e_.loop(e_.index(0), tokens_, by.tokens, {}, [&](Value token, const std::vector<Value>&) {
      Value sums = e_.offset(groups, token, kRowBytes);
      for (int64_t r = 0; r < by.row_groups; ++r)
        for (int64_t at = 0; at < by.tokens * kRowBytes; at += e_.vector_bytes())
          e_.store(e_.splat_f32(0), {sums, r * sums_bytes_ + at});
      return std::vector<Value>();
    });
    return std::vector<Value>();
  });
}

ChunkCore::Place ChunkCore::advance(const Place& at, int64_t groups) {
  return {e_.offset(at.panel, groups * panel_bytes_), e_.offset(at.codes, groups * kGroup),
          e_.offset(at.scales, groups * 4), e_.offset(at.halves, groups * 8)};
}

void ChunkCore::multiply() {
  clear_sums();
  const Cut by = cut();
  const uint64_t rest_weights = c_.spec.k % kGroup;
  const unsigned last_spans = rest_weights ? unsigned((rest_weights + span_ - 1) / span_) : spans_;
  const uint64_t whole = act_.groups - (last_spans < spans_ ? 1 : 0); // groups with all their spans
  // Chunks of equal length, whole iterations each.
  const uint64_t chunks = std::max<uint64_t>(1, (whole + by.chunk_groups - 1) / by.chunk_groups);
  const uint64_t length =
      std::max(by.at_once, ((whole + chunks - 1) / chunks + by.at_once - 1) / by.at_once * by.at_once);
  const uint64_t full = whole / length;
  Value act = c_.tokens[0];
  if (full > 0)
    e_.loop(e_.index(0), e_.index(int64_t(full * length) * 4), int64_t(length) * 4, {},
            [&](Value i, const std::vector<Value>&) {
              multiply_chunk({e_.offset(panel_, i, panel_bytes_ / 4), e_.offset(act, i, kGroup / 4),
                              e_.offset(act, i, 1), e_.offset(act, i, 2)},
                             length, spans_);
              return std::vector<Value>();
            });
  if (full * length < act_.groups)
    multiply_chunk(advance({panel_, act, act, act}, int64_t(full * length)), act_.groups - full * length, last_spans);
}

} // namespace cortiq::codegen
