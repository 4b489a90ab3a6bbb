// The inner part of attention: online softmax in blocks of 64 positions; included once a target, see Highway's
// foreach_target.h.
//
// Layouts: see KvShape. Sixteen neighbouring positions' scores are computed in the lanes of a vector; up to four rows
// share each load of a key or value.
#if defined(CORTIQ_RUNTIME_OPS_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORTIQ_RUNTIME_OPS_ATTENTION_ROWS_INL_H_
#undef CORTIQ_RUNTIME_OPS_ATTENTION_ROWS_INL_H_
#else
#define CORTIQ_RUNTIME_OPS_ATTENTION_ROWS_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "runtime/ops/attention_rows.h"
#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

constexpr size_t kLanes = hn::MaxLanes(F32());
constexpr size_t kVectors = 16 / kLanes; // vectors that hold one value of 16 positions

/// The vector of values that starts `element` values behind `base`; of q8 without its factor.
template <KvType kType>
HWY_INLINE hn::Vec<F32> LoadCache(const uint8_t* base, uint64_t element) {
  const F32 d;
  if constexpr (kType == KvType::kQ8) {
    const hn::Rebind<int8_t, F32> d8;
    return hn::ConvertTo(d, hn::PromoteTo(I32(), hn::LoadU(d8, reinterpret_cast<const int8_t*>(base) + element)));
  } else if constexpr (kType == KvType::kF16) {
    const hn::Rebind<hwy::float16_t, F32> dh;
    return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(base) + element));
  } else {
    return hn::LoadU(d, reinterpret_cast<const float*>(base) + element);
  }
}

constexpr uint64_t element_bytes(KvType type) {
  return type == KvType::kF32 ? 4 : type == KvType::kF16 ? 2 : 1;
}

/// Scores of R rows against S groups of 16 positions over values [first, last) of their heads, as the sums stand in the
/// cache; `keys(s)` is where value `first` of group s stands. Asks for the same of the block that follows, `ahead`
/// bytes on: blocks alternate between keys and values, which the hardware's prefetchers do not follow. Asking past the
/// cache's end asks for nothing.
template <KvType kType, int R, int S, class Keys>
HWY_INLINE void SumProducts(const AttentionRow* rows, Keys keys, int64_t ahead, uint64_t first, uint64_t last,
                            hn::Vec<F32> (&acc)[R][S][kVectors]) {
  const F32 d;
  for (int r = 0; r < R; ++r)
    for (int s = 0; s < S; ++s)
      for (size_t v = 0; v < kVectors; ++v)
        acc[r][s][v] = hn::Zero(d);
  for (uint64_t i = first; i < last; ++i)
    for (int s = 0; s < S; ++s)
      for (size_t v = 0; v < kVectors; ++v) {
        if (v == 0)
          __builtin_prefetch(keys(s) + ahead + (i - first) * 16 * element_bytes(kType));
        const auto key = LoadCache<kType>(keys(s), (i - first) * 16 + v * kLanes);
        for (int r = 0; r < R; ++r)
          acc[r][s][v] = hn::MulAdd(hn::Set(d, rows[r].q[i]), key, acc[r][s][v]);
      }
}

/// Scores of R rows against S groups of 16 positions, whose keys stand at `base`; `scores` has a row each 64.
template <KvType kType, int R, int S>
HWY_INLINE void ScoreGroups(const AttentionTask& task, const AttentionRow* rows, const uint8_t* base, int64_t ahead,
                            float* scores) {
  const F32 d;
  hn::Vec<F32> acc[R][S][kVectors];
  auto at = [&](int r, int s, size_t v) { return scores + r * kAttentionBlock + s * 16 + v * kLanes; };
  if constexpr (kType == KvType::kQ8) {
    constexpr uint64_t kCodes = kKvGroup * 16;
    for (uint64_t first = 0; first < task.k_dim; first += kKvGroup) {
      const uint8_t* block = base + first / kKvGroup * (kCodes + 16 * sizeof(float));
      SumProducts<kType, R, S>(
          rows, [&](int s) { return block + s * task.key_group_bytes; }, ahead, first,
          std::min(first + kKvGroup, task.k_dim), acc);
      for (int s = 0; s < S; ++s)
        for (size_t v = 0; v < kVectors; ++v) {
          const auto factor =
              hn::LoadU(d, reinterpret_cast<const float*>(block + s * task.key_group_bytes + kCodes) + v * kLanes);
          for (int r = 0; r < R; ++r) {
            const auto before = first == 0 ? hn::Zero(d) : hn::LoadU(d, at(r, s, v));
            hn::StoreU(hn::MulAdd(acc[r][s][v], factor, before), d, at(r, s, v));
          }
        }
    }
  } else {
    SumProducts<kType, R, S>(rows, [&](int s) { return base + s * task.key_group_bytes; }, ahead, 0, task.k_dim, acc);
    for (int r = 0; r < R; ++r)
      for (int s = 0; s < S; ++s)
        for (size_t v = 0; v < kVectors; ++v)
          hn::StoreU(acc[r][s][v], d, at(r, s, v));
  }
}

/// Turns a block's raw scores of one row into weights, and returns the factor for what the row has summed so far.
HWY_INLINE float Weigh(const AttentionTask& task, AttentionRow& row, uint64_t block, float* scores) {
  const F32 d;
  const auto scale = hn::Set(d, task.softcap > 0 ? task.scale / task.softcap : task.scale);
  for (size_t j = 0; j < kAttentionBlock; j += kLanes) {
    auto v = hn::Mul(hn::LoadU(d, scores + j), scale);
    if (task.softcap > 0)
      v = hn::Mul(hn::Set(d, task.softcap), hn::Tanh(d, v));
    hn::StoreU(v, d, scores + j);
  }
  const uint64_t base = block * kAttentionBlock;
  const uint64_t first = row.begin > base ? row.begin - base : 0;
  const uint64_t last = std::min(kAttentionBlock, row.end - base);
  std::fill(scores, scores + first, -std::numeric_limits<float>::infinity());
  std::fill(scores + last, scores + kAttentionBlock, -std::numeric_limits<float>::infinity());
  auto largest = hn::Set(d, row.max);
  for (size_t j = 0; j < kAttentionBlock; j += kLanes)
    largest = hn::Max(largest, hn::LoadU(d, scores + j));
  const float top = hn::GetLane(hn::MaxOfLanes(d, largest));
  const auto vtop = hn::Set(d, top);
  auto sums = hn::Zero(d);
  for (size_t j = 0; j < kAttentionBlock; j += kLanes) {
    const auto weight = hn::Exp(d, hn::Sub(hn::LoadU(d, scores + j), vtop));
    sums = hn::Add(sums, weight);
    hn::StoreU(weight, d, scores + j);
  }
  const float correction = hn::GetLane(hn::Exp(d, hn::Set(d, row.max - top)));
  row.sum = row.sum * correction + hn::GetLane(hn::SumOfLanes(d, sums));
  row.max = top;
  return correction;
}

/// acc = acc * correction + sum over positions [first, last) of a block, whose values stand at `base`, of weight *
/// value, for C vectors of columns.
template <KvType kType, int R, int C>
HWY_INLINE void AddValues(const AttentionTask& task, AttentionRow* rows, const uint8_t* base, int64_t ahead,
                          uint64_t first, uint64_t last, const float* weights, const float* corrections,
                          uint64_t column) {
  const F32 d;
  hn::Vec<F32> acc[R][C];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      acc[r][c] = hn::Mul(hn::LoadU(d, rows[r].acc + column + c * kLanes), hn::Set(d, corrections[r]));
  const uint64_t factors = task.value_row_bytes - task.v_stride; // bytes in front of q8 codes
  for (uint64_t j = first; j < last; ++j) {
    const uint8_t* row = base + j * task.value_row_bytes;
    __builtin_prefetch(row + ahead + column * element_bytes(kType));
    for (int c = 0; c < C; ++c) {
      auto value = LoadCache<kType>(kType == KvType::kQ8 ? row + factors : row, column + c * kLanes);
      if constexpr (kType == KvType::kQ8)
        value = hn::Mul(value, hn::Set(d, reinterpret_cast<const float*>(row)[(column + c * kLanes) / kKvGroup]));
      for (int r = 0; r < R; ++r)
        acc[r][c] = hn::MulAdd(hn::Set(d, weights[r * kAttentionBlock + j]), value, acc[r][c]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      hn::StoreU(acc[r][c], d, rows[r].acc + column + c * kLanes);
}

template <KvType kType, int R>
HWY_NOINLINE void BlockRows(const AttentionTask& task, AttentionRow* rows, uint64_t block) {
  // Enough independent sums to hide the latency, few enough to stay in registers.
  constexpr int kGroups = kVectors == 1 || R == 1 ? 4 : R == 2 ? 2 : 1;
  constexpr int kColumns = kVectors == 1 || R <= 2 ? 4 : 2;
  const uint64_t base = block * kAttentionBlock, place = task.cache.place(block);
  const uint8_t *keys = task.cache.keys_at(place), *values = task.cache.values_at(place);
  const int64_t keys_ahead = task.cache.key_step(place), values_ahead = task.cache.value_step(place);
  uint64_t first = kAttentionBlock, last = 0; // positions that any of the rows sees
  for (int r = 0; r < R; ++r) {
    first = std::min(first, rows[r].begin > base ? rows[r].begin - base : 0);
    last = std::max(last, std::min(kAttentionBlock, rows[r].end - base));
  }
  HWY_ALIGN float scores[R * kAttentionBlock];
  for (uint64_t group = 0; group < 4; group += kGroups) {
    if (group * 16 >= last || (group + kGroups) * 16 <= first)
      for (int r = 0; r < R; ++r) // masked below
        std::fill_n(scores + r * kAttentionBlock + group * 16, kGroups * 16, 0.0f);
    else
      ScoreGroups<kType, R, kGroups>(task, rows, keys + group * task.key_group_bytes, keys_ahead, scores + group * 16);
  }
  float corrections[R];
  for (int r = 0; r < R; ++r)
    corrections[r] = Weigh(task, rows[r], block, scores + r * kAttentionBlock);
  uint64_t column = 0;
  for (; column + kColumns * kLanes <= task.v_stride; column += kColumns * kLanes)
    AddValues<kType, R, kColumns>(task, rows, values, values_ahead, first, last, scores, corrections, column);
  for (; column < task.v_stride; column += kLanes)
    AddValues<kType, R, 1>(task, rows, values, values_ahead, first, last, scores, corrections, column);
}

template <KvType kType>
void RunBlocks(const AttentionTask& task) {
  const uint64_t last_block = (task.rows[task.count - 1].end - 1) / kAttentionBlock;
  for (uint64_t block = task.rows[0].begin / kAttentionBlock; block <= last_block; ++block) {
    const uint64_t base = block * kAttentionBlock;
    uint64_t row = 0, end = task.count;
    while (row < end && task.rows[row].end <= base)
      ++row;
    while (end > row && task.rows[end - 1].begin >= base + kAttentionBlock)
      --end;
    for (; row < end; row += std::min<uint64_t>(4, end - row)) {
      AttentionRow* rows = task.rows + row;
      switch (end - row) {
      case 1:
        BlockRows<kType, 1>(task, rows, block);
        break;
      case 2:
        BlockRows<kType, 2>(task, rows, block);
        break;
      case 3:
        BlockRows<kType, 3>(task, rows, block);
        break;
      default:
        BlockRows<kType, 4>(task, rows, block);
      }
    }
  }
}

void Attend(const AttentionTask& task) {
  switch (task.type) {
  case KvType::kF32:
    return RunBlocks<KvType::kF32>(task);
  case KvType::kF16:
    return RunBlocks<KvType::kF16>(task);
  case KvType::kQ8:
    return RunBlocks<KvType::kQ8>(task);
  }
}

/// Divides a finished row by its sum; `sink` is one more score without a value, absent when `has_sink` is false.
void FinishRow(AttentionRow& row, bool has_sink, float sink, uint64_t count, float* out) {
  float factor = 1;
  if (has_sink) {
    const F32 d;
    const float top = std::max(row.max, sink);
    factor = hn::GetLane(hn::Exp(d, hn::Set(d, row.max - top)));
    row.sum = row.sum * factor + hn::GetLane(hn::Exp(d, hn::Set(d, sink - top)));
  }
  const float scale = factor / row.sum;
  for (uint64_t i = 0; i < count; ++i)
    out[i] = row.acc[i] * scale;
}

/// Adds to a row what it sees of `anchors` further keys and values: `query` . key * scale, without cap.
void AddAnchors(AttentionRow& row, const float* query, const float* keys, const float* values, uint64_t anchors,
                uint64_t k_dim, uint64_t v_dim, float scale) {
  for (uint64_t a = 0; a < anchors; ++a) {
    float score = 0;
    for (uint64_t i = 0; i < k_dim; ++i)
      score += query[i] * keys[a * k_dim + i];
    score *= scale;
    const float top = std::max(row.max, score);
    const float kept = std::exp(row.max - top), weight = std::exp(score - top);
    row.max = top;
    row.sum = row.sum * kept + weight;
    for (uint64_t i = 0; i < v_dim; ++i)
      row.acc[i] = row.acc[i] * kept + weight * values[a * v_dim + i];
  }
}

/// Puts what each of `count` rows summed over one chunk of positions behind what it summed over those before.
void MergeRows(AttentionRow* totals, const AttentionRow* parts, uint64_t count, uint64_t v_stride) {
  const F32 d;
  for (uint64_t r = 0; r < count; ++r) {
    AttentionRow& total = totals[r];
    const AttentionRow& part = parts[r];
    const float top = std::max(total.max, part.max);
    const auto kept = hn::Exp(d, hn::Set(d, total.max - top)), added = hn::Exp(d, hn::Set(d, part.max - top));
    for (uint64_t i = 0; i < v_stride; i += kLanes) {
      const auto sum = hn::Mul(hn::LoadU(d, total.acc + i), kept);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, part.acc + i), added, sum), d, total.acc + i);
    }
    total.sum = total.sum * hn::GetLane(kept) + part.sum * hn::GetLane(added);
    total.max = top;
  }
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#endif
