// The core of the `fast` arm on tile registers.
//
// Data: the q8a records of all tokens, one behind the other (kernel_abi.h). Up to four row groups' weights are decoded
// once a call, each into a panel in scratch, a group of 32 weights after the other, as
//   int8 levels[8][16][4]   weights 4s..4s+3 of row r, zero point taken off: what a tile wants as its right side
//   f32  scale[spans][16], minimum[spans][16]   where the codec has them
// A block is two tiles of 16 tokens times two row groups, so that each tile that is loaded serves two products: two
// threads of a core share its tile unit, and loads beside products are what then takes most time. More than two spans
// at once leave too little of the first-level cache to the other thread. Tile roles:
//   0..3 products   16 tokens x 16 rows, i32
//   4, 5 codes      16 tokens x the bytes of a span, of two tiles of tokens
//   6, 7 levels     the span's fours of weights x 16 rows, of two row groups
// Register roles: acc[t] f32 sums of 16 tokens; the span's scale and minimum. Pseudocode:
//   for each chunk of K whose panels stay in the second-level cache, for each 32 tokens, for each two row groups:
//     for each two spans of the chunk:
//       for each span: products[2][2] = codes[2] * levels[2], stored
//       for each of the block's four parts: acc = sums; for each span:
//         acc[t] = fma(f32(products[t]) * x_scale[t], scale, acc[t]);  acc[t] = fma(x_msum[t], minimum, acc[t])
//       sums = acc
//   for each token: out = sums [* row scale] [+ bias] [+ residual]
// Where tokens or row groups fill no whole block the rest of it is computed and left. Integer sums are exact and the
// float steps those of fast_core.cpp, so both cores agree bit for bit.

#include "codegen/kernels/tile_core.h"

#include <algorithm>

namespace cortiq::codegen {
namespace {

constexpr uint64_t kChunkGroups = 96; // groups of a chunk: 54 to 72 KiB of a panel
constexpr unsigned kSpansAtOnce = 2, kMostSpans = 4;
constexpr unsigned kCells = 4;  // products of a span
constexpr int64_t kVector = 64; // bytes of 16 lanes
constexpr int64_t kProductBytes = kTileTokens * kVector;
constexpr unsigned kCodeTiles = 4, kLevelTiles = 6;          // first of two
constexpr int64_t kTokens = 2 * kTileTokens, kRowGroups = 2; // of a block

} // namespace

TileCore::TileCore(CoreContext& c, Value args, Value scratch)
    : ChunkCore(c, args, scratch, kVector), at_once_(std::max(kSpansAtOnce, spans_)) {
  constexpr int64_t kProducts = Decoder::kLadderBytes, kSums = kProducts + kCells * kMostSpans * kProductBytes;
  static_assert(kSums <= int64_t(formats::kTileKernelFixedBytes) && kTokens <= formats::kTileKernelTokens);
  products_ = e_.offset(scratch, kProducts);
  sums_ = e_.offset(scratch, kSums);
  panel_ = e_.offset(sums_, formats::kTileKernelGroups * sums_bytes_);
}

ChunkCore::Cut TileCore::cut() const {
  return {kChunkGroups, at_once_ / spans_, kTokens, kRowGroups};
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

//--- weights ----------------------------------------------------------------------------------------------------------

void TileCore::decode(Value weights, int64_t group_bytes) {
  ChunkCore::decode(weights, group_bytes);
  // The panel behind the last one may be the second of a block. Any levels will do there, but not any floats.
  if (!g_.row_scale)
    e_.loop(groups_, e_.index(formats::kTileKernelGroups), formats::kTileKernelGroups, {},
            [&](Value group, const std::vector<Value>&) {
              clear_scales(e_.offset(panel_, group, panel_stride_));
              return std::vector<Value>();
            });
}

void TileCore::clear_scales(Value panel) {
  e_.loop(e_.index(0), e_.index(int64_t(act_.groups)), 1, {}, [&](Value group, const std::vector<Value>&) {
    Value at = e_.offset(panel, group, panel_bytes_);
    for (int64_t disp = kLevelBytes; disp < panel_bytes_; disp += kVector)
      e_.store(e_.splat_f32(0), {at, disp});
    return std::vector<Value>();
  });
}

void TileCore::put_levels(Address group, unsigned, unsigned step, Value levels) {
  e_.store(levels, group + step * kVector);
}

void TileCore::put_scale(Address group, unsigned, unsigned span, Value scale) {
  e_.store(scale, group + (kLevelBytes + span * kVector));
}

void TileCore::put_minimum(Address group, unsigned, unsigned span, Value minimum) {
  e_.store(minimum, group + (kLevelBytes + (span + spans_) * kVector));
}

//--- products ---------------------------------------------------------------------------------------------------------

void TileCore::multiply_chunk(const Place& chunk, uint64_t groups, unsigned last_spans) {
  const unsigned at_once = at_once_ / spans_;
  const uint64_t whole = groups - (last_spans < spans_ ? 1 : 0), iterations = whole / at_once;
  auto spans_of = [&](uint64_t count, unsigned spans_of_last) {
    std::vector<Span> spans;
    for (unsigned g = 0; g < count; ++g)
      for (unsigned s = 0; s < (g + 1 == count ? spans_of_last : spans_); ++s)
        spans.push_back({g, s});
    return spans;
  };
  auto block = [&](Place at, Value sums) {
    if (iterations > 0) {
      const std::vector<Value> last =
          e_.loop(e_.index(0), e_.index(int64_t(iterations)), 1, {at.panel, at.codes, at.scales, at.halves},
                  [&](Value, const std::vector<Value>& in) {
                    const Place now{in[0], in[1], in[2], in[3]};
                    multiply_spans(now, spans_of(at_once, spans_), sums);
                    const Place next = advance(now, at_once);
                    return std::vector{next.panel, next.codes, next.scales, next.halves};
                  });
      at = {last[0], last[1], last[2], last[3]};
    }
    if (const uint64_t left = groups - iterations * at_once)
      multiply_spans(at, spans_of(left, last_spans), sums);
  };
  e_.loop(e_.index(0), tokens_, kTokens, {}, [&](Value token, const std::vector<Value>&) {
    Value sums = e_.offset(sums_, token, kVector);
    const Place at{chunk.panel, e_.offset(chunk.codes, token, stride_), e_.offset(chunk.scales, token, stride_),
                   e_.offset(chunk.halves, token, stride_)};
    e_.loop(e_.index(0), groups_, kRowGroups, {}, [&](Value group, const std::vector<Value>&) {
      block({e_.offset(at.panel, group, panel_stride_), at.codes, at.scales, at.halves},
            e_.offset(sums, group, sums_bytes_));
      return std::vector<Value>();
    });
    return std::vector<Value>();
  });
}

/// Adds the products of some spans to the sums of a block.
void TileCore::multiply_spans(const Place& at, const std::vector<Span>& spans, Value sums) {
  // Neighbours share a tile, across spans too, and a tile is loaded as soon as nobody needs what it holds.
  auto cell = [](unsigned product, unsigned number) {
    return Cell{product / 2, unsigned(product == 1 || product == 2) ^ (number & 1)};
  };
  load_codes(at, spans[0], 0);
  load_levels(at, spans[0], 0);
  load_levels(at, spans[0], 1);
  load_codes(at, spans[0], 1);
  for (unsigned n = 0; n < spans.size(); ++n)
    for (unsigned product = 0; product < kCells; ++product) {
      const Cell now = cell(product, n);
      if (n > 0)
        store_products(product, cell(product, n - 1), n - 1);
      e_.tile_zero(product);
      e_.tile_dot(product, kCodeTiles + now.tile, kLevelTiles + now.rows);
      if (n + 1 == spans.size())
        continue;
      if (product % 2)
        load_codes(at, spans[n + 1], now.tile);
      if (product >= 2)
        load_levels(at, spans[n + 1], now.rows);
    }
  for (unsigned product = 0; product < kCells; ++product)
    store_products(product, cell(product, unsigned(spans.size()) - 1), unsigned(spans.size()) - 1);

  for (unsigned tile = 0; tile < 2; ++tile)
    for (unsigned rows = 0; rows < 2; ++rows) {
      auto sum = [&](unsigned t) { return Address{sums, rows * sums_bytes_ + (tile * kTileTokens + t) * kVector}; };
      std::vector<Value> acc;
      for (unsigned t = 0; t < kTileTokens; ++t)
        acc.push_back(e_.load(e_.f32(), sum(t)));
      for (unsigned n = 0; n < spans.size(); ++n)
        acc = add_products(at, spans[n], {tile, rows}, n, std::move(acc));
      for (unsigned t = 0; t < kTileTokens; ++t)
        e_.store(acc[t], sum(t));
    }
}

void TileCore::load_codes(const Place& at, Span span, unsigned tile) {
  const int64_t in_record = int64_t(span.group) * kGroup + span.number * span_;
  e_.tile_load(kCodeTiles + tile, {at.codes, tile * kTileTokens * stride_ + in_record}, stride_);
}

void TileCore::load_levels(const Place& at, Span span, unsigned rows) {
  const int64_t in_panel = span.group * panel_bytes_ + span.number * (span_ / 4) * kVector;
  e_.tile_load(kLevelTiles + rows, {at.panel, rows * panel_stride_ + in_panel}, kVector);
}

/// Where a cell's products with span number `number` of several stand.
int64_t TileCore::slot(Cell cell, unsigned number) const {
  return int64_t((cell.tile * 2 + cell.rows) * at_once_ + number) * kProductBytes;
}

void TileCore::store_products(unsigned product, Cell cell, unsigned number) {
  e_.tile_store(product, {products_, slot(cell, number)}, kVector);
}

std::vector<Value> TileCore::add_products(const Place& at, Span span, Cell cell, unsigned number,
                                          std::vector<Value> acc) {
  Value scale, minimum;
  const Address scales{at.panel,
                       cell.rows * panel_stride_ + span.group * panel_bytes_ + kLevelBytes + span.number * kVector};
  if (!g_.row_scale)
    scale = e_.load(e_.f32(), scales);
  if (g_.has_min)
    minimum = e_.load(e_.f32(), scales + spans_ * kVector);
  for (unsigned t = 0; t < kTileTokens; ++t) {
    const int64_t record = (cell.tile * kTileTokens + t) * stride_;
    Value product = e_.to_f32(e_.load(e_.i32(), {products_, slot(cell, number) + t * kVector}));
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
  return acc;
}

} // namespace cortiq::codegen
