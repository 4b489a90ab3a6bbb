// The core of the `fast` arm on products of two rows of eight bytes by two (vec.dot8_pairs).
//
// Up to four row groups' weights are decoded once a call. A group of 32 weights in a panel, rows two by two:
//   int8 levels[spans][8 row pairs][eights of weights of a span][2 rows][8]
//   f32  scale[spans][8 row pairs][s0 s1 s0 s1]     beside each the minima in the same order, where the codec has them
// The activations of four tokens at a time are arranged alike, from the q8a records to scratch, a group after the
// other:
//   int8 codes[2 pairs of tokens][4][2 tokens][8]
//   f32  scale[2 pairs][x0 x0 x1 x1], then with minima sum[spans][2 pairs][x0 x0 x1 x1]
// A product is then [t0 r0][t0 r1][t1 r0][t1 r1], and so are the sums until the epilogue. Register roles, a span:
//   x[pair][8]            codes, held over the row pairs
//   product[pair]         i32
//   acc[row pair][pair]   f32 sums, carried in registers over a chunk
// Pseudocode:
//   for each chunk of K whose panels stay in the first-level cache, for each four tokens: arrange them; for each row
//   group, for each group of 32 and span:
//     for each row pair: product[2] = x * levels
//       acc = fma(f32(product) * x_scale, scale, acc);  acc = fma(x_sum, minimum, acc)
//   for each token: out = sums [* row scale] [+ bias] [+ residual]
// Integer sums are exact and the float steps those of fast_core.cpp, so both cores agree bit for bit.

#include "codegen/kernels/pair_core.h"

namespace cortiq::codegen {
namespace {

constexpr uint64_t kChunkGroups = 16;                              // four panels of 10 to 16 KiB
constexpr uint64_t kUnrolled = 2;                                  // groups an iteration
constexpr int64_t kArranged = Decoder::kLadderBytes;               // where activations are arranged
constexpr int64_t kSums = int64_t(formats::kTileKernelFixedBytes); // where sums begin
constexpr int64_t kPairBytes = 128;                                // of the sums of two tokens

} // namespace

PairCore::PairCore(CoreContext& c, Value args, Value scratch)
    : ChunkCore(c, args, scratch, 2 * kRowBytes),
      act_bytes_(int64_t(kPairs) * (kOctets + 1 + (g_.has_min ? spans_ : 0)) * kVectorBytes) {
  static_assert(kArranged + kChunkGroups * kPairs * (kOctets + 1 + kOctets) * kVectorBytes <= kSums);
  arranged_ = e_.offset(scratch, kArranged);
  sums_ = e_.offset(scratch, kSums);
  panel_ = e_.offset(sums_, formats::kTileKernelGroups * sums_bytes_);
}

ChunkCore::Cut PairCore::cut() const {
  return {kChunkGroups, kUnrolled, kTokens, 1};
}

//--- weights ----------------------------------------------------------------------------------------------------------

int64_t PairCore::levels_at(unsigned span, unsigned row_pair, unsigned octet) const {
  return ((span * 8 + row_pair) * octets() + octet) * kVectorBytes;
}

int64_t PairCore::scale_at(unsigned span, unsigned row_pair, bool minimum) const {
  const unsigned each = g_.has_min ? 2 : 1;
  return kLevelBytes + ((span * 8 + row_pair) * each + (minimum ? 1 : 0)) * kVectorBytes;
}

void PairCore::put_levels(Address group, unsigned v, unsigned step, Value levels) {
  const unsigned octet = step / 2;
  Value& other = waiting_[v][octet];
  if (!other) {
    other = levels;
    return;
  }
  const Value first = step % 2 ? other : levels, second = step % 2 ? levels : other;
  for (unsigned half : {0u, 1u})
    e_.store(e_.interleave(first, second, 4, half != 0),
             group + levels_at(octet / octets(), 2 * v + half, octet % octets()));
  other = {};
}

void PairCore::put_row_pairs(Address group, unsigned v, unsigned span, bool minimum, Value of_rows) {
  for (unsigned half : {0u, 1u})
    e_.store(e_.interleave(of_rows, of_rows, 8, half != 0), group + scale_at(span, 2 * v + half, minimum));
}

void PairCore::put_scale(Address group, unsigned v, unsigned span, Value scale) {
  put_row_pairs(group, v, span, false, scale);
}

void PairCore::put_minimum(Address group, unsigned v, unsigned span, Value minimum) {
  put_row_pairs(group, v, span, true, minimum);
}

//--- activations ------------------------------------------------------------------------------------------------------

/// Arranges a chunk's activations of the four tokens from `chunk` on.
void PairCore::arrange(const Place& chunk, uint64_t groups) {
  constexpr uint64_t kAtOnce = 4;
  for (unsigned pair = 0; pair < kPairs; ++pair) {
    std::vector<Value> from;
    for (Value array : {chunk.codes, chunk.scales, chunk.halves})
      for (int64_t token : {2 * pair, 2 * pair + 1})
        from.push_back(e_.offset(array, token * stride_));
    from.push_back(arranged_);
    if (groups >= kAtOnce)
      from = e_.loop(e_.index(0), e_.index(int64_t(groups / kAtOnce)), 1, from,
                     [&](Value, const std::vector<Value>& in) { return arrange_groups(in, kAtOnce, pair); });
    arrange_groups(from, groups % kAtOnce, pair);
  }
}

/// Arranges the next groups of two tokens; `from` holds where the tokens' codes, scales and half sums stand, and where
/// the arranged group goes. Returns the same behind them.
std::vector<Value> PairCore::arrange_groups(const std::vector<Value>& from, uint64_t groups, unsigned pair) {
  const Value *codes = &from[0], *scales = &from[2], *halves = &from[4];
  const Address to{from[6], 0};
  auto store_pairs = [&](Value a, Value b, Address at) { e_.store(e_.interleave(a, b, 8, false), at); };
  for (uint64_t g = 0; g < groups; ++g) {
    const Address group = to + int64_t(g) * act_bytes_;
    for (unsigned half : {0u, 1u}) {
      Value of[2];
      for (unsigned t : {0u, 1u})
        of[t] = e_.load(e_.i8(), {codes[t], int64_t(g) * kGroup + half * kVectorBytes});
      for (unsigned high : {0u, 1u})
        e_.store(e_.interleave(of[0], of[1], 8, high != 0), group + (pair * kOctets + 2 * half + high) * kVectorBytes);
    }
    Value scale[2];
    for (unsigned t : {0u, 1u})
      scale[t] = e_.load_splat_f32({scales[t], int64_t(act_.scale + 4 * g)});
    store_pairs(scale[0], scale[1], group + token_scale_at(pair));
    for (unsigned s = 0; s < spans_ && g_.has_min; ++s) {
      Value sum[2];
      for (unsigned t : {0u, 1u})
        sum[t] = span_ == kGroup
                     ? e_.load_splat_f32({scales[t], int64_t(act_.msum + 4 * g)})
                     : e_.mul(e_.to_f32(e_.load_splat_i32({halves[t], int64_t(act_.sum16 + 8 * g + 4 * s)})), scale[t]);
      store_pairs(sum[0], sum[1], group + token_sum_at(s, pair));
    }
  }
  constexpr int64_t kAdvance[] = {kGroup, kGroup, 4, 4, 8, 8};
  std::vector<Value> next;
  for (unsigned i = 0; i < 6; ++i)
    next.push_back(e_.offset(from[i], int64_t(groups) * kAdvance[i]));
  next.push_back(e_.offset(from[6], int64_t(groups) * act_bytes_));
  return next;
}

//--- products ---------------------------------------------------------------------------------------------------------

void PairCore::multiply_chunk(const Place& chunk, uint64_t groups, unsigned last_spans) {
  const uint64_t whole = groups - (last_spans < spans_ ? 1 : 0), iterations = whole / kUnrolled;
  auto block = [&](Value panel, Value sums) {
    Accumulators acc(row_pairs() * kPairs);
    auto slot = [&](unsigned i) {
      return Address{sums, int64_t(i % kPairs) * kPairBytes + int64_t(i / kPairs) * kVectorBytes};
    };
    for (unsigned i = 0; i < acc.size(); ++i)
      acc[i] = e_.load(e_.f32(), slot(i));
    Value act = arranged_;
    if (iterations > 0) {
      std::vector<Value> carried = acc;
      carried.insert(carried.end(), {panel, act});
      carried =
          e_.loop(e_.index(0), e_.index(int64_t(iterations)), 1, carried, [&](Value, const std::vector<Value>& in) {
            const Value now_panel = in[acc.size()], now_act = in[acc.size() + 1];
            std::vector<Value> next =
                add_groups({{now_panel, 0}, {now_act, 0}}, kUnrolled, spans_, {in.begin(), in.begin() + acc.size()});
            next.push_back(e_.offset(now_panel, int64_t(kUnrolled) * panel_bytes_));
            next.push_back(e_.offset(now_act, int64_t(kUnrolled) * act_bytes_));
            return next;
          });
      panel = carried[acc.size()];
      act = carried[acc.size() + 1];
      carried.resize(acc.size());
      acc = carried;
    }
    acc = add_groups({{panel, 0}, {act, 0}}, groups - iterations * kUnrolled, last_spans, std::move(acc));
    for (unsigned i = 0; i < acc.size(); ++i)
      e_.store(acc[i], slot(i));
  };
  e_.loop(e_.index(0), tokens_, kTokens, {}, [&](Value token, const std::vector<Value>&) {
    arrange({chunk.panel, e_.offset(chunk.codes, token, stride_), e_.offset(chunk.scales, token, stride_),
             e_.offset(chunk.halves, token, stride_)},
            groups);
    Value sums = e_.offset(sums_, token, kRowBytes);
    e_.loop(e_.index(0), groups_, 1, {}, [&](Value group, const std::vector<Value>&) {
      block(e_.offset(chunk.panel, group, panel_stride_), e_.offset(sums, group, sums_bytes_));
      return std::vector<Value>();
    });
    return std::vector<Value>();
  });
}

/// Adds the products of groups from `first` on; the last has `last_spans` spans.
PairCore::Accumulators PairCore::add_groups(const Group& first, uint64_t groups, unsigned last_spans,
                                            Accumulators acc) {
  for (uint64_t g = 0; g < groups; ++g) {
    const Group at{first.panel + int64_t(g) * panel_bytes_, first.act + int64_t(g) * act_bytes_};
    std::vector<Value> codes;
    for (unsigned i = 0; i < kPairs * kOctets; ++i)
      codes.push_back(e_.load(e_.i8(), at.act + i * kVectorBytes));
    for (unsigned s = 0; s < (g + 1 == groups ? last_spans : spans_); ++s)
      add_span(at, s, codes, acc);
  }
  return acc;
}

void PairCore::add_span(const Group& at, unsigned span, const std::vector<Value>& codes, Accumulators& acc) {
  Value x_scale[kPairs], x_sum[kPairs], next_scale;
  for (unsigned p = 0; p < kPairs; ++p)
    x_scale[p] = e_.load(e_.f32(), at.act + token_scale_at(p));
  for (unsigned p = 0; p < kPairs && g_.has_min; ++p)
    x_sum[p] = e_.load(e_.f32(), at.act + token_sum_at(span, p));
  for (unsigned r = 0; r < row_pairs(); ++r) {
    Value product[kPairs];
    for (unsigned o = 0; o < octets(); ++o) {
      Value levels = e_.load(e_.i8(), at.panel + levels_at(span, r, o));
      for (unsigned p = 0; p < kPairs; ++p)
        product[p] =
            e_.dot8_pairs(product[p] ? product[p] : e_.splat_i32(0), codes[p * kOctets + span * octets() + o], levels);
    }
    Value scale, minimum;
    if (next_scale) {
      scale = next_scale;
      next_scale = {};
    } else if (!g_.row_scale) {
      scale = e_.load(e_.f32(), at.panel + scale_at(span, r, false));
      // Neighbours are one instruction: the minimum, or the next two rows' scale.
      if (g_.has_min)
        minimum = e_.load(e_.f32(), at.panel + scale_at(span, r, true));
      else if (r + 1 < row_pairs())
        next_scale = e_.load(e_.f32(), at.panel + scale_at(span, r + 1, false));
    }
    for (unsigned p = 0; p < kPairs; ++p) {
      Value& a = acc[r * kPairs + p];
      Value f = e_.to_f32(product[p]);
      a = g_.row_scale ? e_.fma(f, x_scale[p], a) : e_.fma(e_.mul(f, x_scale[p]), scale, a);
      if (g_.has_min)
        a = e_.fma(x_sum[p], minimum, a);
    }
  }
}

//--- results ----------------------------------------------------------------------------------------------------------

void PairCore::epilogue(Address group, Value sums, const Output& output) {
  // Two tokens' rows in order, where their pairs were.
  e_.loop(e_.index(0), tokens_, 2, {}, [&](Value token, const std::vector<Value>&) {
    Value pair = e_.offset(sums, token, kRowBytes);
    std::vector<Value> rows;
    for (unsigned r = 0; r < row_pairs(); ++r)
      rows.push_back(e_.load(e_.f32(), {pair, int64_t(r) * kVectorBytes}));
    for (unsigned t : {0u, 1u})
      for (unsigned v = 0; v < c_.vectors; ++v)
        e_.store(e_.interleave(rows[2 * v], rows[2 * v + 1], 8, t != 0),
                 {pair, int64_t(t) * kRowBytes + int64_t(v) * kVectorBytes});
    return std::vector<Value>();
  });
  ChunkCore::epilogue(group, sums, output);
}

} // namespace cortiq::codegen
