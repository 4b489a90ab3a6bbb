// The core of the `fast` arm on tile registers.
//
// Data: the q8a records of all tokens, one behind the other (kernel_abi.h). A row group's weights are decoded once a
// call into a panel in scratch, a group of 32 weights after the other, each as
//   int8 levels[8][16][4]   weights 4s..4s+3 of row r, zero point taken off: what a tile wants as its right side
//   f32  scale[spans][16], minimum[spans][16]   where the codec has them
// Tile roles, two sets and four results in turn, so that loads, products and stores overlap:
//   0..3 products   16 tokens x 16 rows, i32
//   4, 5 codes      16 tokens x the bytes of a span
//   6, 7 levels     the span's fours of weights x 16 rows
// Register roles: acc[t] f32 sums of 16 tokens; the span's scale and minimum. Pseudocode:
//   for each chunk of the panel that stays in the first-level cache, for each 16 tokens:
//     acc = sums;  for each span: products = codes * levels, stored;
//       acc[t] = fma(f32(products[t]) * x_scale[t], scale, acc[t]);  acc[t] = fma(x_msum[t], minimum, acc[t])
//     sums = acc
//   for each token: out = sums [* row scale] [+ bias] [+ residual]
// Integer sums are exact and the float steps those of fast_core.cpp, so both cores agree bit for bit.

#include "codegen/kernels/tile_core.h"

#include <algorithm>

namespace cortiq::codegen {
namespace {

using formats::KernelArgs;

constexpr unsigned kGroup = 32;       // activations that share a scale
constexpr int64_t kVector = 64;       // bytes of 16 lanes
constexpr int64_t kLevelBytes = 512;  // of a group in the panel
constexpr uint64_t kChunkGroups = 32; // groups of a chunk: 16 to 32 KiB
constexpr unsigned kSpansAtOnce = 4;  // a product tile each
constexpr unsigned kAhead = 2;        // spans whose products are under way while one is added
constexpr int64_t kProductBytes = kTileTokens * kVector;
constexpr unsigned kCodeTiles = 4, kLevelTiles = 6; // first of two

} // namespace

TileCore::TileCore(CoreContext& c, Value args, Value scratch)
    : c_(c), e_(c.e), g_(c.geometry), act_(formats::q8_act_layout(c.spec.k)), stride_(int64_t(act_.bytes)),
      span_(g_.row_scale ? kGroup : g_.span), spans_(kGroup / span_),
      panel_bytes_(kLevelBytes + (g_.row_scale ? 0 : kVector * spans_ * (g_.has_min ? 2 : 1))),
      tokens_(e_.load_index(args, offsetof(KernelArgs, tokens))),
      out_stride_(e_.load_index(args, offsetof(KernelArgs, out_stride))) {
  if (c.spec.residual)
    residual_stride_ = e_.load_index(args, offsetof(KernelArgs, residual_stride));
  static_assert(Decoder::kLadderBytes + kSpansAtOnce * kProductBytes <= formats::kKernelScratchBytes);
  products_ = e_.offset(scratch, Decoder::kLadderBytes);
  sums_ = e_.offset(scratch, int64_t(formats::kKernelScratchBytes));
  const int64_t tokens = (c.spec.tokens + kTileTokens - 1) / kTileTokens * kTileTokens;
  panel_ = e_.offset(sums_, tokens * kVector);
}

void TileCore::begin_call() {
  std::vector<int64_t> rows, bytes;
  for (unsigned tile = 0; tile < kLevelTiles + 2; ++tile) {
    rows.push_back(tile < kLevelTiles ? kTileTokens : span_ / 4);
    bytes.push_back(tile < kCodeTiles || tile >= kLevelTiles ? kVector : span_);
  }
  e_.tile_config(rows, bytes);
}

void TileCore::end_call() {
  e_.tile_release();
}

void TileCore::run(Address group, const Output& output) {
  decode(group);
  clear_sums();
  multiply();
  epilogue(group, output);
}

//--- weights ----------------------------------------------------------------------------------------------------------

void TileCore::decode(Address group) {
  k_loop(c_, group, 4 * (g_.block / kGroup), {}, [&](const RecordPlace& place, std::vector<Value>) {
    decode_record(place);
    return std::vector<Value>();
  });
}

void TileCore::decode_record(const RecordPlace& place) {
  // The counter advances by 4 a group.
  Value panel = place.index ? e_.offset(panel_, place.index, panel_bytes_ / 4) : panel_;
  const int64_t first = place.static_index / 4 * panel_bytes_;
  const unsigned steps = unsigned((place.weights + 3) / 4), spans = unsigned((place.weights + span_ - 1) / span_);
  auto at = [&](unsigned span) { return Address{panel, first + span / spans_ * panel_bytes_}; };
  for (unsigned s = 0; s < spans; ++s) {
    prefetch_part(c_, place, s, spans);
    for (unsigned step_in_span : c_.decoder.step_order(s)) {
      const unsigned step = s * (span_ / 4) + step_in_span;
      const int64_t disp = step % (kGroup / 4) * kVector;
      if (step >= steps) { // nothing may meet the zeros behind the activations but numbers
        e_.store(e_.splat_i8(0), at(s) + disp);
        continue;
      }
      Value level = c_.decoder.levels(place.record, 0, step);
      if (!g_.is_signed && g_.zero_point)
        level = e_.sub(level, e_.splat_i8(int(g_.zero_point)));
      e_.store(level, at(s) + disp);
    }
    if (g_.row_scale)
      continue;
    const int64_t scale = kLevelBytes + s % spans_ * kVector;
    e_.store(c_.decoder.scale(place.record, 0, s), at(s) + scale);
    if (g_.has_min)
      e_.store(c_.decoder.minimum(place.record, 0, s), at(s) + scale + spans_ * kVector);
  }
}

//--- products ---------------------------------------------------------------------------------------------------------

void TileCore::clear_sums() {
  e_.loop(e_.index(0), tokens_, kTileTokens, {}, [&](Value token, const std::vector<Value>&) {
    Value sums = e_.offset(sums_, token, kVector);
    for (unsigned t = 0; t < kTileTokens; ++t)
      e_.store(e_.splat_f32(0), {sums, t * kVector});
    return std::vector<Value>();
  });
}

TileCore::Place TileCore::advance(const Place& at, int64_t groups) {
  return {e_.offset(at.panel, groups * panel_bytes_), e_.offset(at.codes, groups * kGroup),
          e_.offset(at.scales, groups * 4), e_.offset(at.halves, groups * 8)};
}

void TileCore::multiply() {
  const uint64_t rest_weights = c_.spec.k % kGroup;
  const unsigned last_spans = rest_weights ? unsigned((rest_weights + span_ - 1) / span_) : spans_;
  const uint64_t whole = act_.groups - (last_spans < spans_ ? 1 : 0); // groups with all their spans
  // Chunks of equal length, whole iterations each.
  const uint64_t at_once = std::max(1u, kSpansAtOnce / spans_);
  const uint64_t chunks = std::max<uint64_t>(1, (whole + kChunkGroups - 1) / kChunkGroups);
  const uint64_t length = std::max(at_once, ((whole + chunks - 1) / chunks + at_once - 1) / at_once * at_once);
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

/// Adds the products of `groups` groups, the last of which has `last_spans` spans, to the sums of all tokens.
void TileCore::multiply_chunk(const Place& chunk, uint64_t groups, unsigned last_spans) {
  const unsigned at_once = std::max(1u, kSpansAtOnce / spans_);
  const uint64_t whole = groups - (last_spans < spans_ ? 1 : 0), iterations = whole / at_once;
  auto spans_of = [&](uint64_t count, unsigned spans_of_last) {
    std::vector<Span> spans;
    for (unsigned g = 0; g < count; ++g)
      for (unsigned s = 0; s < (g + 1 == count ? spans_of_last : spans_); ++s)
        spans.push_back({g, s});
    return spans;
  };
  e_.loop(e_.index(0), tokens_, kTileTokens, {}, [&](Value token, const std::vector<Value>&) {
    Value sums = e_.offset(sums_, token, kVector);
    std::vector<Value> carried;
    for (unsigned t = 0; t < kTileTokens; ++t)
      carried.push_back(e_.load(e_.f32(), {sums, t * kVector}));
    Place at{chunk.panel, e_.offset(chunk.codes, token, stride_), e_.offset(chunk.scales, token, stride_),
             e_.offset(chunk.halves, token, stride_)};
    if (iterations > 0) {
      carried.insert(carried.end(), {at.panel, at.codes, at.scales, at.halves});
      carried =
          e_.loop(e_.index(0), e_.index(int64_t(iterations)), 1, carried, [&](Value, const std::vector<Value>& in) {
            const Value* p = in.data() + kTileTokens;
            const Place now{p[0], p[1], p[2], p[3]};
            std::vector<Value> next =
                multiply_spans(now, spans_of(at_once, spans_), {in.begin(), in.begin() + kTileTokens});
            const Place after = advance(now, at_once);
            next.insert(next.end(), {after.panel, after.codes, after.scales, after.halves});
            return next;
          });
      const Value* p = carried.data() + kTileTokens;
      at = {p[0], p[1], p[2], p[3]};
      carried.resize(kTileTokens);
    }
    if (const uint64_t left = groups - iterations * at_once)
      carried = multiply_spans(at, spans_of(left, last_spans), std::move(carried));
    for (unsigned t = 0; t < kTileTokens; ++t)
      e_.store(carried[t], {sums, t * kVector});
    return std::vector<Value>();
  });
}

std::vector<Value> TileCore::multiply_spans(const Place& at, const std::vector<Span>& spans, std::vector<Value> acc) {
  for (size_t i = 0; i < spans.size() + kAhead; ++i) {
    if (i < spans.size())
      issue(at, spans[i], unsigned(i) % kSpansAtOnce);
    if (i >= kAhead)
      add_products(at, spans[i - kAhead], unsigned(i - kAhead) % kSpansAtOnce, acc);
  }
  return acc;
}

/// Computes the products of one span and stores them in the slot.
void TileCore::issue(const Place& at, Span span, unsigned slot) {
  const unsigned codes = kCodeTiles + slot % 2, levels = kLevelTiles + slot % 2;
  e_.tile_zero(slot);
  e_.tile_load(levels, Address{at.panel, span.group * panel_bytes_ + span.number * (span_ / 4) * kVector}, kVector);
  e_.tile_load(codes, Address{at.codes, int64_t(span.group) * kGroup + span.number * span_}, stride_);
  e_.tile_dot(slot, codes, levels);
  e_.tile_store(slot, Address{products_, slot * kProductBytes}, kVector);
}

void TileCore::add_products(const Place& at, Span span, unsigned slot, std::vector<Value>& acc) {
  Value scale, minimum;
  const Address scales{at.panel, span.group * panel_bytes_ + kLevelBytes + span.number * kVector};
  if (!g_.row_scale)
    scale = e_.load(e_.f32(), scales);
  if (g_.has_min)
    minimum = e_.load(e_.f32(), scales + spans_ * kVector);
  for (unsigned t = 0; t < kTileTokens; ++t) {
    const int64_t record = t * stride_;
    Value product = e_.to_f32(e_.load(e_.i32(), {products_, slot * kProductBytes + t * kVector}));
    Value x_scale = e_.load_splat_f32({at.scales, record + int64_t(act_.scale) + 4 * span.group});
    acc[t] = g_.row_scale ? e_.fma(product, x_scale, acc[t]) : e_.fma(e_.mul(product, x_scale), scale, acc[t]);
    if (!g_.has_min)
      continue;
    Value x_sum;
    if (span_ == kGroup) {
      x_sum = e_.load_splat_f32({at.scales, record + int64_t(act_.msum) + 4 * span.group});
    } else {
      const int64_t half = int64_t(act_.sum16) + 8 * span.group + 4 * span.number;
      x_sum = e_.mul(e_.to_f32(e_.load_splat_i32({at.halves, record + half})), x_scale);
    }
    acc[t] = e_.fma(x_sum, minimum, acc[t]);
  }
}

//--- results ----------------------------------------------------------------------------------------------------------

void TileCore::epilogue(Address group, const Output& output) {
  const unsigned rows = c_.spec.rows;
  Value row_scale = g_.row_scale ? c_.decoder.row_scale(group, 0) : Value();
  Value bias = output.bias ? e_.load(e_.f32(), {output.bias, 0}, rows) : Value();
  std::vector<Value> carried = {output.out};
  if (output.residual)
    carried.push_back(output.residual);
  e_.loop(e_.index(0), tokens_, 1, carried, [&](Value token, const std::vector<Value>& in) {
    Value y = e_.load(e_.f32(), {e_.offset(sums_, token, kVector), 0});
    if (row_scale)
      y = e_.mul(y, row_scale);
    if (bias)
      y = e_.add(y, bias);
    if (output.residual)
      y = e_.add(y, e_.load(e_.f32(), {in[1], 0}, rows));
    e_.store(y, {in[0], 0}, rows);
    std::vector<Value> next = {e_.offset(in[0], out_stride_, 1)};
    if (output.residual)
      next.push_back(e_.offset(in[1], residual_stride_, 1));
    return next;
  });
}

} // namespace cortiq::codegen
