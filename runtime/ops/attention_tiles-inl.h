#pragma once

// Attention's scores and sums as products of tiles; `Tiles` is the unit, in tests a stand-in for it.
//
// All right sides are panels of pairs, as tiles want them: of 16 columns
//   bf16 panel[depth / 2][16][2]
// Keys: columns are positions, the depth the head's values. Values: the other way round. Left sides are rows of bf16.

#include <algorithm>
#include <cstring>
#include <immintrin.h>
#include <limits>

#include "hwy/base.h"
#include "runtime/ops/attention_tiles.h"

namespace cortiq::runtime::tiled {

constexpr uint64_t kSide = 16;        ///< rows and columns of a tile
constexpr uint64_t kDepth = 32;       ///< bf16 values of a tile's row
constexpr uint64_t kTileBytes = 1024; ///< of a tile
constexpr uint64_t kRows = 2 * kSide; ///< that pass together
constexpr uint64_t kLine = 64;        ///< bytes of a vector

constexpr uint64_t whole(uint64_t count, uint64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// Where a call's panels and rows stand.
struct Room {
  uint64_t k_depth; ///< k_dim in whole tiles
  uint64_t v_columns;
  uint8_t *keys, *values; ///< panels: of 16 positions and all k_depth, of 16 columns and all positions of the chunk
  uint8_t* queries;       ///< [k_depth / 32][32 rows][32]
  float* scores;          ///< [32 rows][chunk]
  uint8_t* weights;       ///< [32 rows][chunk] of bf16
  float* sums;            ///< [32 rows][v_columns], where the scores were
  uint64_t bytes;

  Room(uint8_t* base, uint64_t k_dim, uint64_t v_stride)
      : k_depth(whole(k_dim, kDepth)), v_columns(whole(v_stride, 2 * kSide)) {
    uint64_t at = 0;
    auto take = [&](uint64_t size) {
      uint8_t* here = base == nullptr ? nullptr : base + at; // without memory only the size is asked for
      at += whole(size, kLine);
      return here;
    };
    keys = take(kAttentionChunk * k_depth * 2);
    values = take(kAttentionChunk * v_columns * 2);
    queries = take(kRows * k_depth * 2);
    weights = take(kRows * kAttentionChunk * 2);
    scores = reinterpret_cast<float*>(take(kRows * std::max(kAttentionChunk, v_columns) * sizeof(float)));
    sums = scores;
    bytes = at;
  }
};

} // namespace cortiq::runtime::tiled

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")
namespace cortiq::runtime::tiled {

/// Two vectors as pairs.
inline __m512i interleaved(__m512 even, __m512 odd) {
  const __m512i in_turn = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(in_turn, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even)));
}

/// The 16 values that start `element` values behind `base`; of q8 without their factor.
template <KvType kType>
inline __m512 load_cache(const uint8_t* base, uint64_t element) {
  if constexpr (kType == KvType::kQ8)
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(base + element))));
  else if constexpr (kType == KvType::kF16)
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(base + 2 * element)));
  else
    return _mm512_loadu_ps(base + 4 * element);
}

/// Value `i` of 16 positions' keys.
template <KvType kType>
inline __m512 key_values(const uint8_t* group, uint64_t i) {
  if constexpr (kType == KvType::kQ8) {
    const uint8_t* block = group + i / kKvGroup * (kKvGroup * 16 + 16 * sizeof(float));
    return _mm512_mul_ps(load_cache<kType>(block, i % kKvGroup * 16), _mm512_loadu_ps(block + kKvGroup * 16));
  } else {
    return load_cache<kType>(group, i * 16);
  }
}

/// Sixteen columns of one position's value.
template <KvType kType>
inline __m512 value_columns(const AttentionTask& task, const uint8_t* row, uint64_t column) {
  if constexpr (kType == KvType::kQ8) {
    float factor;
    std::memcpy(&factor, row + column / kKvGroup * sizeof(float), sizeof factor);
    return _mm512_mul_ps(load_cache<kType>(row + (task.value_row_bytes - task.v_stride), column),
                         _mm512_set1_ps(factor));
  } else {
    return load_cache<kType>(row, column);
  }
}

/// Panels of the keys of one block of positions, the first of which is position `at` of the chunk.
template <KvType kType>
inline void fill_keys(const AttentionTask& task, const Room& room, const uint8_t* keys, uint64_t at) {
  for (uint64_t group = 0; group < kAttentionBlock / kSide; ++group) {
    const uint8_t* from = keys + group * task.key_group_bytes;
    uint8_t* panel = room.keys + (at / kSide + group) * room.k_depth / 2 * kLine;
    for (uint64_t i = 0; i < room.k_depth; i += 2) {
      const __m512 even = i < task.k_dim ? key_values<kType>(from, i) : _mm512_setzero_ps();
      const __m512 odd = i + 1 < task.k_dim ? key_values<kType>(from, i + 1) : _mm512_setzero_ps();
      _mm512_store_si512(panel + i / 2 * kLine, interleaved(even, odd));
    }
  }
}

/// Panels of the values of one block, of which only the first `count` positions hold any.
template <KvType kType>
inline void fill_values(const AttentionTask& task, const Room& room, const uint8_t* values, uint64_t at,
                        uint64_t count) {
  for (uint64_t p = 0; p < kAttentionBlock; p += 2)
    for (uint64_t column = 0; column < room.v_columns; column += kSide) {
      const uint8_t* row = values + p * task.value_row_bytes;
      const bool inside = column < task.v_stride;
      const __m512 even = inside && p < count ? value_columns<kType>(task, row, column) : _mm512_setzero_ps();
      const __m512 odd = inside && p + 1 < count ? value_columns<kType>(task, row + task.value_row_bytes, column)
                                                 : _mm512_setzero_ps();
      _mm512_store_si512(room.values + column / kSide * (kAttentionChunk / 2 * kLine) + (at + p) / 2 * kLine,
                         interleaved(even, odd));
    }
}

/// e^x for x <= 0, and 0 far below.
inline __m512 exponential(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-126.0f), x); // in this order a NaN stays one
  const __m512 whole_part = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
  __m512 r = _mm512_fnmadd_ps(whole_part, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(whole_part, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 y = _mm512_set1_ps(1.0f / 720);
  for (const float factor : {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(factor));
  return _mm512_scalef_ps(y, whole_part);
}

inline __m512 capped(__m512 x, float cap) {
  // tanh of |x|, by its exponential
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 e = exponential(_mm512_mul_ps(_mm512_abs_ps(x), _mm512_set1_ps(-2.0f)));
  const __m512 t = _mm512_div_ps(_mm512_sub_ps(one, e), _mm512_add_ps(one, e));
  const __mmask16 below = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  const __m512 v = _mm512_mul_ps(t, _mm512_set1_ps(cap));
  return _mm512_mask_sub_ps(v, below, _mm512_setzero_ps(), v);
}

/// Which of 16 positions from `at` on lie in [first, last).
inline __mmask16 seen(uint64_t at, uint64_t first, uint64_t last) {
  const uint32_t from = first > at ? static_cast<uint32_t>(std::min(first - at, kSide)) : 0;
  const uint32_t to = last > at ? static_cast<uint32_t>(std::min(last - at, kSide)) : 0;
  return static_cast<__mmask16>(((1u << to) - 1) & ~((1u << from) - 1));
}

/// Positions of the chunk, in whole tiles of depth.
struct Span {
  uint64_t begin, end;
};

/// Turns a row's scores over `span` into weights, 0 for what it does not see.
inline void weigh(const AttentionTask& task, AttentionRow& row, uint64_t base, const Span& span, float* scores,
                  uint8_t* weights) {
  const uint64_t first = row.begin - std::min(base, row.begin), last = row.end - base;
  const bool cap = task.softcap > 0;
  const __m512 scale = _mm512_set1_ps(cap ? task.scale / task.softcap : task.scale);
  const __m512 lowest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 largest = lowest;
  for (uint64_t at = span.begin; at < span.end; at += kSide) {
    __m512 v = _mm512_mul_ps(_mm512_loadu_ps(scores + at), scale);
    if (cap)
      v = capped(v, task.softcap);
    v = _mm512_mask_mov_ps(lowest, seen(at, first, last), v);
    largest = _mm512_max_ps(largest, v);
    _mm512_storeu_ps(scores + at, v);
  }
  row.max = _mm512_reduce_max_ps(largest);
  const __m512 top = _mm512_set1_ps(row.max);
  __m512 sum = _mm512_setzero_ps();
  for (uint64_t at = span.begin; at < span.end; at += kSide) {
    const __m512 weight =
        _mm512_maskz_mov_ps(seen(at, first, last), exponential(_mm512_sub_ps(_mm512_loadu_ps(scores + at), top)));
    sum = _mm512_add_ps(sum, weight);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(weights + 2 * at),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(weight)));
  }
  row.sum = _mm512_reduce_add_ps(sum);
}

/// Where a product's operands stand: two tiles of rows, two panels.
struct Operands {
  const uint8_t* left;
  uint64_t left_stride, left_tile, left_step; ///< bytes from row to row, to the other tile of rows, and a depth on
  const uint8_t* right;
  uint64_t right_panel; ///< bytes to the other panel
};

/// out[32 rows][32 columns] = left x right over `steps` depths.
template <class Tiles>
inline void multiply(const Operands& at, uint64_t steps, float* out, uint64_t out_stride) {
  Tiles::template zero<0>();
  Tiles::template zero<1>();
  Tiles::template zero<2>();
  Tiles::template zero<3>();
  const uint8_t *left = at.left, *right = at.right;
  for (uint64_t step = 0; step < steps; ++step) {
    Tiles::template load<4>(left, at.left_stride);
    Tiles::template load<6>(right, kLine);
    Tiles::template dot<0, 4, 6>();
    Tiles::template load<7>(right + at.right_panel, kLine);
    Tiles::template dot<1, 4, 7>();
    Tiles::template load<5>(left + at.left_tile, at.left_stride);
    Tiles::template dot<2, 5, 6>();
    Tiles::template dot<3, 5, 7>();
    left += at.left_step;
    right += kTileBytes;
  }
  const uint64_t stride = out_stride * sizeof(float);
  auto* to = reinterpret_cast<uint8_t*>(out);
  Tiles::template store<0>(to, stride);
  Tiles::template store<1>(to + kLine, stride);
  Tiles::template store<2>(to + kSide * stride, stride);
  Tiles::template store<3>(to + kSide * stride + kLine, stride);
}

/// Of a query's `dim` values the 16 from `first` on, and zeros behind them.
inline __m512 query_values(const float* q, uint64_t first, uint64_t dim) {
  const uint64_t from = std::min(first, dim), left = std::min(dim - from, kSide);
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((uint32_t{1} << left) - 1), q + from);
}

inline void fill_queries(const AttentionTask& task, const Room& room, const AttentionRow* rows, uint64_t count) {
  const __m512i zero = _mm512_setzero_si512();
  for (uint64_t r = 0; r < kRows; ++r)
    for (uint64_t i = 0; i < room.k_depth; i += kDepth) {
      auto* line = room.queries + i / kDepth * kRows * kLine + r * kLine;
      if (r >= count) {
        _mm512_store_si512(line, zero);
        continue;
      }
      const __m512 low = query_values(rows[r].q, i, task.k_dim), high = query_values(rows[r].q, i + kSide, task.k_dim);
      _mm512_store_si512(line, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
    }
}

/// Up to 32 rows over the panels of the chunk that begins at position `base`.
template <class Tiles>
inline void attend_rows(const AttentionTask& task, const Room& room, AttentionRow* rows, uint64_t count,
                        uint64_t base) {
  const uint64_t begin = rows[0].begin - std::min(base, rows[0].begin);
  const Span span{begin / kDepth * kDepth, whole(rows[count - 1].end - base, kDepth)};
  fill_queries(task, room, rows, count);
  const uint64_t key_panel = room.k_depth / 2 * kLine, value_panel = kAttentionChunk / 2 * kLine;
  for (uint64_t at = span.begin; at < span.end; at += 2 * kSide)
    multiply<Tiles>({room.queries, kLine, kTileBytes, 2 * kTileBytes, room.keys + at / kSide * key_panel, key_panel},
                    room.k_depth / kDepth, room.scores + at, kAttentionChunk);
  for (uint64_t r = 0; r < count; ++r)
    weigh(task, rows[r], base, span, room.scores + r * kAttentionChunk, room.weights + r * kAttentionChunk * 2);
  for (uint64_t r = count; r < kRows; ++r)
    std::memset(room.weights + r * kAttentionChunk * 2 + span.begin * 2, 0, (span.end - span.begin) * 2);
  for (uint64_t column = 0; column < room.v_columns; column += 2 * kSide)
    multiply<Tiles>({room.weights + span.begin * 2, kAttentionChunk * 2, kSide * kAttentionChunk * 2, kLine,
                     room.values + column / kSide * value_panel + span.begin / 2 * kLine, value_panel},
                    (span.end - span.begin) / kDepth, room.sums + column, room.v_columns);
  for (uint64_t r = 0; r < count; ++r)
    std::memcpy(rows[r].acc, room.sums + r * room.v_columns, task.v_stride * sizeof(float));
}

template <class Tiles, KvType kType>
inline void attend(const AttentionTask& task, uint8_t* scratch) {
  const Room room(scratch, task.k_dim, task.v_stride);
  const uint64_t end = task.rows[task.count - 1].end, base = (end - 1) / kAttentionChunk * kAttentionChunk;
  const uint64_t first = std::max(task.rows[0].begin, base) / kAttentionBlock;
  for (uint64_t block = first; block * kAttentionBlock < end; ++block) {
    const uint64_t place = task.cache.place(block), at = block * kAttentionBlock - base;
    fill_keys<kType>(task, room, task.cache.keys_at(place), at);
    fill_values<kType>(task, room, task.cache.values_at(place), at, std::min(kAttentionBlock, end - base - at));
  }
  Tiles::begin();
  for (uint64_t row = 0; row < task.count; row += kRows)
    attend_rows<Tiles>(task, room, task.rows + row, std::min(kRows, task.count - row), base);
  Tiles::end();
}

template <class Tiles>
inline void attend(const AttentionTask& task, uint8_t* scratch) {
  switch (task.type) {
  case KvType::kF32:
    return attend<Tiles, KvType::kF32>(task, scratch);
  case KvType::kF16:
    return attend<Tiles, KvType::kF16>(task, scratch);
  case KvType::kQ8:
    return attend<Tiles, KvType::kQ8>(task, scratch);
  }
}

} // namespace cortiq::runtime::tiled
HWY_POP_ATTRIBUTES
