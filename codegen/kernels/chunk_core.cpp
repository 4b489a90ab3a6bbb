#include "codegen/kernels/chunk_core.h"

#include <algorithm>

namespace cortiq::codegen {

using formats::KernelArgs;

ChunkCore::ChunkCore(CoreContext& c, Value args, Value scratch, int64_t scale_bytes)
    : c_(c), e_(c.e), g_(c.geometry), act_(formats::q8_act_layout(c.spec.k)), stride_(int64_t(act_.bytes)),
      span_(g_.row_scale ? kGroup : g_.span), spans_(kGroup / span_),
      panel_bytes_(kLevelBytes + (g_.row_scale ? 0 : scale_bytes * spans_ * (g_.has_min ? 2 : 1))),
      panel_stride_(int64_t(act_.groups) * panel_bytes_),
      sums_bytes_(int64_t(formats::tile_kernel_tokens(c.spec.tokens)) * kRowBytes),
      groups_(e_.load_index(args, offsetof(KernelArgs, groups))),
      tokens_(e_.load_index(args, offsetof(KernelArgs, tokens))),
      out_stride_(e_.load_index(args, offsetof(KernelArgs, out_stride))), scratch_(scratch) {
  if (c.spec.residual)
    residual_stride_ = e_.load_index(args, offsetof(KernelArgs, residual_stride));
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

//--- results ----------------------------------------------------------------------------------------------------------

void ChunkCore::epilogue(Address group, Value sums, const Output& output) {
  std::vector<Value> row_scale(c_.vectors), bias(c_.vectors);
  std::vector<unsigned> lanes(c_.vectors);
  std::vector<int64_t> disp(c_.vectors);
  for (unsigned v = 0; v < c_.vectors; ++v) {
    disp[v] = int64_t(v) * e_.vector_bytes();
    lanes[v] = std::min(c_.spec.rows - v * e_.lanes(), e_.lanes());
    if (g_.row_scale)
      row_scale[v] = c_.decoder.row_scale(group, v);
    if (output.bias)
      bias[v] = e_.load(e_.f32(), {output.bias, disp[v]}, lanes[v]);
  }
  std::vector<Value> carried = {output.out};
  if (output.residual)
    carried.push_back(output.residual);
  e_.loop(e_.index(0), tokens_, 1, carried, [&](Value token, const std::vector<Value>& in) {
    Value from = e_.offset(sums, token, kRowBytes);
    for (unsigned v = 0; v < c_.vectors; ++v) {
      Value y = e_.load(e_.f32(), {from, disp[v]});
      if (row_scale[v])
        y = e_.mul(y, row_scale[v]);
      if (bias[v])
        y = e_.add(y, bias[v]);
      if (output.residual)
        y = e_.add(y, e_.load(e_.f32(), {in[1], disp[v]}, lanes[v]));
      e_.store(y, {in[0], disp[v]}, lanes[v]);
    }
    std::vector<Value> next = {e_.offset(in[0], out_stride_, 1)};
    if (output.residual)
      next.push_back(e_.offset(in[1], residual_stride_, 1));
    return next;
  });
}

} // namespace cortiq::codegen
