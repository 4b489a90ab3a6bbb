// The core of the `bf16` arm: products of bf16 on tile registers, sums in f32.
//
// Data: the activations in bf16 behind the q8a records of all tokens, one behind the other (kernel_abi.h). Of up to
// eight row groups a chunk of K is decoded at a time, each into a panel in scratch, two weights a lane as a tile wants
// them as its right side:
//   bf16 w[K / 2][16][2]    weights 2p and 2p+1 of row r, rounded; without the row's scale where the codec has one
// A block is two tiles of 16 tokens times two row groups, so that each tile that is loaded serves two products. Sums
// stay in tiles over a chunk. Tile roles:
//   0..3 sums      16 tokens x 16 rows, f32
//   4, 5 values    16 tokens x 32 activations, of two tiles of tokens
//   6, 7 weights   16 pairs of weights x 16 rows, of two row groups
// Pseudocode:
//   for each chunk of K:
//     panels = decode(row groups)
//     for each 32 tokens, for each two row groups:
//       tiles = sums, or 0;  for each 32 weights: tiles[2][2] += values[2] * weights[2];  sums = tiles
//   for each token: out = sums [* row scale] [+ bias] [+ residual]
// Where tokens or row groups fill no whole block the rest of it is computed and left. The order of the sums over K is
// the same wherever K is cut, for sums go through memory as they are.

#include "codegen/kernels/bf16_core.h"

#include <algorithm>
#include <numeric>

namespace cortiq::codegen {
namespace {

constexpr unsigned kStep = 32; // weights of a product
constexpr unsigned kUnrolled = 4;
constexpr unsigned kCells = 4; // products of a step
constexpr int64_t kVector = 64;
constexpr int64_t kTileBytes = kTileTokens * kVector;
constexpr unsigned kTiles = 8, kValueTiles = 4, kWeightTiles = 6; // all, and the first of two
constexpr unsigned kAheadSteps = 2;                          // of whose operands a step asks the second-level cache
constexpr unsigned kAheadRows = 8;                           // of the next block, that two row groups ask memory for
constexpr int64_t kTokens = 2 * kTileTokens, kRowGroups = 2; // of a block

/// One of a step's four products: which of two tiles of tokens, and which of two row groups. Neighbours share a tile,
/// across steps too.
struct Cell {
  unsigned tile, rows;
  unsigned sums() const { return tile * 2 + rows; }
};
Cell cell(unsigned product, unsigned step) {
  return {product / 2, unsigned(product == 1 || product == 2) ^ (step & 1)};
}

/// Weights of a chunk: whole iterations of the decoder's loop and whole steps, as even parts of K as there may be.
uint64_t chunk_weights(uint64_t k, uint64_t iteration) {
  constexpr uint64_t kMost = formats::kBf16ChunkWeights;
  if (k <= kMost)
    return k;
  const uint64_t unit = std::lcm<uint64_t>(iteration, kStep), chunks = (k + kMost - 1) / kMost;
  return std::min(((k + chunks - 1) / chunks + unit - 1) / unit * unit, kMost / unit * unit);
}

} // namespace

Bf16Core::Bf16Core(CoreContext& c, Value args, Value scratch)
    : SumsCore(c, args), act_(formats::bf16_act_layout(c.spec.k)), stride_(int64_t(act_.bytes)),
      iteration_(uint64_t(g_.block) * g_.unroll), chunk_(chunk_weights(c.spec.k, iteration_)),
      panel_stride_(int64_t((chunk_ + kStep - 1) / kStep) * kTileBytes), scratch_(scratch) {
  static_assert(Decoder::kLadderBytes <= int64_t(formats::kBf16KernelFixedBytes));
  static_assert(kTokens <= int64_t(formats::kTileKernelTokens) && formats::kBf16KernelGroups % kRowGroups == 0);
  sums_ = e_.offset(scratch, formats::kBf16KernelFixedBytes);
  panel_ = e_.offset(sums_, int64_t(formats::kBf16KernelGroups) * sums_bytes_);
}

void Bf16Core::begin_call() {
  e_.tile_config(std::vector<int64_t>(kTiles, kTileTokens), std::vector<int64_t>(kTiles, kVector));
}

void Bf16Core::end_call() {
  e_.tile_release();
}

void Bf16Core::run(Value weights, int64_t group_bytes) {
  const uint64_t k = c_.spec.k, chunks = k / chunk_, its = chunk_ / std::max<uint64_t>(1, iteration_);
  run_chunk({{}, chunk_, true}, weights, group_bytes);
  if (chunks > 1)
    e_.loop(e_.index(int64_t(its)), e_.index(int64_t(chunks * its)), int64_t(its), {},
            [&](Value iteration, const std::vector<Value>&) {
              run_chunk({iteration, chunk_, false}, weights, group_bytes);
              return std::vector<Value>();
            });
  if (const uint64_t rest = k - chunks * chunk_)
    run_chunk({e_.index(int64_t(chunks * its)), rest, false}, weights, group_bytes);
}

void Bf16Core::run_chunk(const Chunk& chunk, Value weights, int64_t group_bytes) {
  decode(chunk, weights, group_bytes);
  multiply(chunk);
}

//--- weights ----------------------------------------------------------------------------------------------------------

void Bf16Core::decode(const Chunk& chunk, Value weights, int64_t group_bytes) {
  const RowPart part{chunk.iteration, chunk.weights};
  const int64_t filled = int64_t((chunk.weights + 1) / 2) * kVector;
  const int64_t whole = int64_t((chunk.weights + kStep - 1) / kStep) * kTileBytes;
  e_.loop(e_.index(0), groups_, 1, {weights, panel_}, [&](Value, const std::vector<Value>& in) {
    const Address group{in[0], 0};
    c_.decoder.begin_group(group, {scratch_, 0}, c_.vectors);
    k_loop(
        c_, group, g_.block, {},
        [&](const RecordPlace& place, std::vector<Value>) {
          decode_record(place, in[1]);
          return std::vector<Value>();
        },
        part);
    // The zeros behind the activations may meet nothing but numbers.
    for (int64_t at = filled; at < whole; at += kVector)
      e_.store(e_.splat_i32(0), {in[1], at});
    return std::vector<Value>{e_.offset(in[0], group_bytes), e_.offset(in[1], panel_stride_)};
  });
}

void Bf16Core::decode_record(const RecordPlace& place, Value panel) {
  // The counter counts weights.
  const Address at{place.index ? e_.offset(panel, place.index, kVector / 2) : panel,
                   place.static_index * (kVector / 2)};
  std::vector<uint8_t> in_turn;
  for (uint8_t lane = 0; lane < kTileTokens; ++lane)
    for (uint8_t byte : {2 * lane, 2 * lane + 1, 32 + 2 * lane, 33 + 2 * lane})
      in_turn.push_back(byte);
  auto put = [&](unsigned pair, Value even, Value odd) {
    Value both = e_.bitcast(e_.pack_bf16(even, odd), e_.i8());
    e_.store(e_.lookup64(both, e_.bytes(in_turn)), at + int64_t(pair) * kVector);
  };
  Value even; // of a pair whose other weight is still to come
  for_each_weight(c_, place, [&](unsigned i, const std::vector<Value>& w) {
    if (i % 2 == 0)
      even = w[0];
    else
      put(i / 2, even, w[0]);
  });
  if (place.weights % 2)
    put(unsigned(place.weights / 2), even, e_.splat_f32(0));
}

//--- products ---------------------------------------------------------------------------------------------------------

void Bf16Core::multiply(const Chunk& chunk) {
  const uint64_t steps = (chunk.weights + kStep - 1) / kStep;
  Value values = e_.offset(c_.tokens[0], int64_t(act_.values));
  if (chunk.iteration)
    values = e_.offset(values, chunk.iteration, int64_t(iteration_) * 2);
  e_.loop(e_.index(0), tokens_, kTokens, {}, [&](Value token, const std::vector<Value>&) {
    Value act = e_.offset(values, token, stride_), next = e_.offset(act, kTokens * stride_);
    Value sums = e_.offset(sums_, token, kRowBytes);
    e_.loop(e_.index(0), groups_, kRowGroups, {}, [&](Value group, const std::vector<Value>&) {
      multiply_block(chunk.first, steps,
                     {act, e_.offset(panel_, group, panel_stride_),
                      e_.offset(next, group, int64_t(kAheadRows) / kRowGroups * stride_)},
                     e_.offset(sums, group, sums_bytes_));
      return std::vector<Value>();
    });
    return std::vector<Value>();
  });
}

void Bf16Core::multiply_block(bool first, uint64_t steps, Place at, Value sums) {
  auto place = [&](unsigned product) {
    const Cell of = cell(product, 0);
    return Address{sums, of.rows * sums_bytes_ + of.tile * kTileBytes};
  };
  for (unsigned product = 0; product < kCells; ++product) {
    const unsigned tile = cell(product, 0).sums();
    first ? e_.tile_zero(tile) : e_.tile_load(tile, place(product), kVector);
  }
  load_values(at.act, 0, 0);
  load_weights(at.panel, 0, 0);
  load_weights(at.panel, 0, 1);
  load_values(at.act, 0, 1);
  // The last step loads nothing for a next one.
  const uint64_t iterations = (steps - 1) / kUnrolled;
  if (iterations > 0) {
    const std::vector<Value> last =
        e_.loop(e_.index(0), e_.index(int64_t(iterations)), 1, {at.act, at.panel, at.ahead},
                [&](Value, const std::vector<Value>& in) {
                  multiply_steps(kUnrolled, true, {in[0], in[1], in[2]});
                  return std::vector{e_.offset(in[0], kUnrolled * kVector), e_.offset(in[1], kUnrolled * kTileBytes),
                                     e_.offset(in[2], kUnrolled * kVector)};
                });
    at = {last[0], last[1], last[2]};
  }
  multiply_steps(steps - iterations * kUnrolled, false, at);
  for (unsigned product = 0; product < kCells; ++product)
    e_.tile_store(cell(product, 0).sums(), place(product), kVector);
}

/// `steps` steps, the first of which is in the tiles already; `more`: load those of the step behind them.
void Bf16Core::multiply_steps(uint64_t steps, bool more, const Place& at) {
  for (unsigned n = 0; n < steps; ++n)
    for (unsigned product = 0; product < kCells; ++product) {
      const Cell now = cell(product, n);
      e_.tile_dot_bf16(now.sums(), kValueTiles + now.tile, kWeightTiles + now.rows);
      ask(at, n, product);
      // A tile is loaded as soon as nobody needs what it holds.
      if (n + 1 == steps && !more)
        continue;
      if (product % 2)
        load_values(at.act, n + 1, now.tile);
      if (product >= 2)
        load_weights(at.panel, n + 1, now.rows);
    }
}

/// Part `part` of four of what a step asks for: the operands of the step kAheadSteps behind it, which come from the
/// second-level cache too late otherwise, and a part of the next block's activations, which come from further away.
void Bf16Core::ask(const Place& at, unsigned step, unsigned part) {
  const int64_t next = step + kAheadSteps;
  for (unsigned line = part; line < kTokens; line += kCells) {
    e_.prefetch({at.act, line * stride_ + next * kVector}, true);
    e_.prefetch({at.panel, line / kTileTokens * panel_stride_ + next * kTileBytes + line % kTileTokens * kVector},
                true);
  }
  for (unsigned row = part; row < kAheadRows; row += kCells)
    e_.prefetch({at.ahead, row * stride_ + step * kVector}, true);
}

void Bf16Core::load_values(Value act, unsigned step, unsigned tile) {
  e_.tile_load(kValueTiles + tile, {act, tile * kTileTokens * stride_ + step * kVector}, stride_);
}

void Bf16Core::load_weights(Value panel, unsigned step, unsigned rows) {
  e_.tile_load(kWeightTiles + rows, {panel, rows * panel_stride_ + step * kTileBytes}, kVector);
}

} // namespace cortiq::codegen
