// Causal attention over a layer's cache: online softmax in blocks of 64 positions.
//
// Blocks lie at fixed positions of the context and every row (one query head of one token) sums its own positions in
// ascending order, so a row's result depends on its position only, not on the batch it came in nor on the workers.
// Layouts: see KvShape. Sixteen neighbouring positions' scores are computed in the lanes of a vector; up to four rows
// share each load of a key or value.

#include <algorithm>
#include <limits>

#include "formats/checked_math.h"
#include "runtime/ops/op.h"
#include "runtime/overlay/overlay.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/attention.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "hwy/contrib/math/math-inl.h"
#include "runtime/ops/quantize-inl.h"

#ifndef CORTIQ_RUNTIME_OPS_ATTENTION_ONCE
#define CORTIQ_RUNTIME_OPS_ATTENTION_ONCE
namespace cortiq::runtime {

inline constexpr uint64_t kAttentionBlock = 64;

/// One query head of one token.
struct AttentionRow {
  const float* q;
  float* acc;          ///< v_stride floats
  uint64_t begin, end; ///< positions it sees
  float max, sum;
};

/// Rows of one KV head, ordered by ascending `begin` and `end`.
struct AttentionTask {
  AttentionRow* rows;
  uint64_t count;
  const uint8_t* keys; ///< of this KV head
  const uint8_t* values;
  uint64_t k_dim, v_stride;
  float scale, softcap;
  bool f16;
};

} // namespace cortiq::runtime
#endif

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

constexpr size_t kLanes = hn::MaxLanes(F32());
constexpr size_t kVectors = 16 / kLanes; // vectors that hold one value of 16 positions

template <bool kF16>
HWY_INLINE hn::Vec<F32> LoadCache(const uint8_t* base, uint64_t element) {
  const F32 d;
  if constexpr (kF16) {
    const hn::Rebind<hwy::float16_t, F32> dh;
    return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(base) + element));
  } else {
    return hn::LoadU(d, reinterpret_cast<const float*>(base) + element);
  }
}

/// Scores of R rows against S groups of 16 positions; `scores` has a row each 64.
template <bool kF16, int R, int S>
HWY_INLINE void ScoreGroups(const AttentionTask& task, const AttentionRow* rows, uint64_t group, float* scores) {
  const F32 d;
  hn::Vec<F32> acc[R][S][kVectors];
  for (int r = 0; r < R; ++r)
    for (int s = 0; s < S; ++s)
      for (size_t v = 0; v < kVectors; ++v)
        acc[r][s][v] = hn::Zero(d);
  for (uint64_t i = 0; i < task.k_dim; ++i)
    for (int s = 0; s < S; ++s)
      for (size_t v = 0; v < kVectors; ++v) {
        const auto key = LoadCache<kF16>(task.keys, ((group + s) * task.k_dim + i) * 16 + v * kLanes);
        for (int r = 0; r < R; ++r)
          acc[r][s][v] = hn::MulAdd(hn::Set(d, rows[r].q[i]), key, acc[r][s][v]);
      }
  for (int r = 0; r < R; ++r)
    for (int s = 0; s < S; ++s)
      for (size_t v = 0; v < kVectors; ++v)
        hn::StoreU(acc[r][s][v], d, scores + r * kAttentionBlock + s * 16 + v * kLanes);
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

/// acc = acc * correction + sum over positions [first, last) of weight * value, for C vectors of columns.
template <bool kF16, int R, int C>
HWY_INLINE void AddValues(const AttentionTask& task, AttentionRow* rows, uint64_t base, uint64_t first, uint64_t last,
                          const float* weights, const float* corrections, uint64_t column) {
  const F32 d;
  hn::Vec<F32> acc[R][C];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      acc[r][c] = hn::Mul(hn::LoadU(d, rows[r].acc + column + c * kLanes), hn::Set(d, corrections[r]));
  for (uint64_t j = first; j < last; ++j)
    for (int c = 0; c < C; ++c) {
      const auto value = LoadCache<kF16>(task.values, (base + j) * task.v_stride + column + c * kLanes);
      for (int r = 0; r < R; ++r)
        acc[r][c] = hn::MulAdd(hn::Set(d, weights[r * kAttentionBlock + j]), value, acc[r][c]);
    }
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      hn::StoreU(acc[r][c], d, rows[r].acc + column + c * kLanes);
}

template <bool kF16, int R>
HWY_NOINLINE void BlockRows(const AttentionTask& task, AttentionRow* rows, uint64_t block) {
  // Enough independent sums to hide the latency, few enough to stay in registers.
  constexpr int kGroups = kVectors == 1 || R == 1 ? 4 : R == 2 ? 2 : 1;
  constexpr int kColumns = R <= 2 ? 4 : 2;
  const uint64_t base = block * kAttentionBlock;
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
      ScoreGroups<kF16, R, kGroups>(task, rows, block * 4 + group, scores + group * 16);
  }
  float corrections[R];
  for (int r = 0; r < R; ++r)
    corrections[r] = Weigh(task, rows[r], block, scores + r * kAttentionBlock);
  uint64_t column = 0;
  for (; column + kColumns * kLanes <= task.v_stride; column += kColumns * kLanes)
    AddValues<kF16, R, kColumns>(task, rows, base, first, last, scores, corrections, column);
  for (; column < task.v_stride; column += kLanes)
    AddValues<kF16, R, 1>(task, rows, base, first, last, scores, corrections, column);
}

template <bool kF16>
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
        BlockRows<kF16, 1>(task, rows, block);
        break;
      case 2:
        BlockRows<kF16, 2>(task, rows, block);
        break;
      case 3:
        BlockRows<kF16, 3>(task, rows, block);
        break;
      default:
        BlockRows<kF16, 4>(task, rows, block);
      }
    }
  }
}

void Attend(const AttentionTask& task) {
  if (task.f16)
    RunBlocks<true>(task);
  else
    RunBlocks<false>(task);
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

void QuantizeHeads(const float* x, uint64_t begin, uint64_t end, uint64_t k, uint8_t* record) {
  quantize_range(x, begin, end, k, record);
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(AddAnchors);
HWY_EXPORT(Attend);
HWY_EXPORT(FinishRow);
HWY_EXPORT(QuantizeHeads);

constexpr uint64_t kMaxAnchors = 65536;
constexpr uint64_t kQueries = 16; // tokens of an item: they share the keys and values that the item reads

uint64_t align64(uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

class AttentionCall final : public Call {
public:
  CallInfo info() const override { return {"attention", heads, kv.k_dim, 0}; }
  CallWork work(const StepContext& step, const StepShape& shape) const override {
    const uint64_t end = step.position + shape.first + shape.count;
    const uint64_t first = kv.window == 0 ? 0 : end - std::min(end, kv.window + shape.count);
    uint64_t pairs = 0; // of a query and a position that it sees
    for (uint64_t token = 1; token <= shape.count; ++token) {
      const uint64_t seen = step.position + shape.first + token;
      pairs += kv.window == 0 ? seen : std::min(seen, kv.window);
    }
    return {(end - first) * kv.kv_heads * (kv.k_dim + kv.v_dim) * (step.kv_f16 ? 2 : 4),
            2 * pairs * heads * (kv.k_dim + kv.v_dim)};
  }
  uint64_t items(const StepShape& shape) const override { return query_blocks(shape) * head_blocks(shape); }
  uint64_t scratch_bytes() const override {
    return align64(kQueries * group() * sizeof(AttentionRow)) +
           align64(kQueries * group() * kv.v_stride() * sizeof(float)) +
           align64(kQueries * largest_heads() * kv.v_dim * sizeof(float));
  }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const uint64_t blocks = query_blocks(shape);
    for (uint64_t item = begin; item < end; ++item) {
      // The last queries see most positions: they come first, so that the end of the stage is fine grained.
      const uint64_t first = shape.first + (blocks - 1 - item % blocks) * kQueries;
      const uint64_t last = std::min(first + kQueries, shape.first + shape.count);
      const uint64_t each = heads_an_item(shape);
      run_item(step, first, last, item / blocks * each, each, scratch);
    }
  }

  SlotRef q, out, act_out;
  KvShape kv;
  uint32_t layer = 0;
  uint64_t heads = 0;
  float scale = 1, softcap = 0;
  const float* sinks = nullptr;
  SlotRef q_still;
  const float* anchor_keys = nullptr; ///< [kv_heads][anchors][k_dim]
  const float* anchor_values = nullptr;
  uint64_t anchors = 0;
  std::vector<uint64_t> group_windows; ///< of each KV head; empty = the cache's

private:
  uint64_t group() const { return heads / kv.kv_heads; }
  /// Groups of a q8a record may not be shared by two items.
  bool heads_inseparable() const { return act_out.present && kv.v_dim % 32 != 0; }
  uint64_t largest_heads() const { return heads_inseparable() ? heads : group(); }
  uint64_t query_blocks(const StepShape& shape) const { return formats::ceil_div(shape.count, kQueries); }
  uint64_t heads_an_item(const StepShape& shape) const {
    if (heads_inseparable())
      return heads;
    return shape.threads == 1 || kv.kv_heads * query_blocks(shape) >= 2 * shape.threads ? group() : 1;
  }
  uint64_t head_blocks(const StepShape& shape) const { return heads / heads_an_item(shape); }

  /// Tokens [first, last) of the batch and query heads [head, head + count).
  void run_item(const StepContext& step, uint64_t first, uint64_t last, uint64_t head, uint64_t count,
                uint8_t* scratch) const {
    auto* rows = reinterpret_cast<AttentionRow*>(scratch);
    auto* acc = reinterpret_cast<float*>(scratch + align64(kQueries * group() * sizeof(AttentionRow)));
    float* results = acc + align64(kQueries * group() * kv.v_stride() * sizeof(float)) / sizeof(float);
    const uint64_t width = count * kv.v_dim;
    for (uint64_t done = 0; done < count; done += std::min(count, group()))
      attend(step, first, last, head + done, std::min(count, group()), rows, acc, results + done * kv.v_dim, width);
    for (uint64_t token = first; token < last; ++token) {
      float* result = results + (token - first) * width;
      const uint64_t column = head * kv.v_dim;
      cut_columns(step, mask, result, column, width);
      if (out.present) {
        float* row = out.f32(step.arena, token);
        std::memcpy(row + column, result, width * sizeof(float));
        if (column + width == out.elements)
          std::fill(row + out.elements, row + (out.elements + 15) / 16 * 16, 0.0f);
      }
      if (act_out.present)
        HWY_DYNAMIC_DISPATCH(QuantizeHeads)
      (result, column, column + width, heads * kv.v_dim, act_out.bytes(step.arena, token));
    }
  }

  /// Heads [head, head + count) of one KV head.
  void attend(const StepContext& step, uint64_t first, uint64_t last, uint64_t head, uint64_t count, AttentionRow* rows,
              float* acc, float* results, uint64_t width) const {
    const uint64_t kv_head = head / group();
    const uint64_t element = step.kv_f16 ? sizeof(uint16_t) : sizeof(float);
    AttentionTask task{rows,
                       0,
                       step.kv[layer].keys + kv_head * kv.k_elements(step.kv_positions) * element,
                       step.kv[layer].values + kv_head * kv.v_elements(step.kv_positions) * element,
                       kv.k_dim,
                       kv.v_stride(),
                       scale,
                       softcap,
                       step.kv_f16};
    for (uint64_t token = first; token < last; ++token) {
      const uint64_t end = step.position + token + 1;
      const uint64_t window = group_windows.empty() ? kv.window : group_windows[kv_head];
      const uint64_t begin = window != 0 && end > window ? end - window : 0;
      for (uint64_t h = head; h < head + count; ++h) {
        float* row_acc = acc + task.count * task.v_stride;
        std::fill(row_acc, row_acc + task.v_stride, 0.0f);
        rows[task.count++] = {q.f32(step.arena, token) + h * kv.k_dim, row_acc, begin, end,
                              -std::numeric_limits<float>::infinity(), 0};
      }
    }
    HWY_DYNAMIC_DISPATCH(Attend)(task);
    for (uint64_t r = 0; r < task.count && anchors != 0; ++r)
      HWY_DYNAMIC_DISPATCH(AddAnchors)
    (rows[r], q_still.f32(step.arena, first + r / count) + (head + r % count) * kv.k_dim,
     anchor_keys + kv_head * anchors * kv.k_dim, anchor_values + kv_head * anchors * kv.v_dim, anchors, kv.k_dim,
     kv.v_dim, scale);
    for (uint64_t r = 0; r < task.count; ++r)
      HWY_DYNAMIC_DISPATCH(FinishRow)
    (rows[r], sinks != nullptr, sinks ? sinks[head + r % count] : 0.0f, kv.v_dim,
     results + r / count * width + r % count * kv.v_dim);
  }
};

} // namespace

Status resolve_attention(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::AttentionOp& attention = *op.op_as_AttentionOp();
  auto call = std::make_unique<AttentionCall>();
  if (attention.layer() >= facts.kv_layers.size())
    return invalid("attention: there is no cache layer " + std::to_string(attention.layer()));
  const KvShape kv = call->kv = facts.kv_layers[attention.layer()];
  call->layer = attention.layer();
  call->heads = attention.heads();
  if (call->heads == 0 || call->heads % kv.kv_heads != 0 || attention.head_dim() != kv.k_dim)
    return invalid("attention: " + std::to_string(attention.heads()) + " heads of " +
                   std::to_string(attention.head_dim()) + " do not fit the cache of layer " +
                   std::to_string(attention.layer()));
  CORTIQ_ASSIGN_OR_RETURN(call->q,
                          resolver.f32_columns(attention.q(), attention.q_column(), call->heads * kv.k_dim, "queries"));
  const uint64_t width = call->heads * kv.v_dim;
  if (attention.out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(attention.out(), width, "attention"));
  }
  if (attention.act_out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->act_out, resolver.q8_slot(attention.act_out(), width, "attention"));
  }
  if (attention.sinks() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->sinks, resolver.vector(attention.sinks(), call->heads, "attention sinks"));
  }
  if (attention.sink_count() != 0) {
    call->anchors = attention.sink_count();
    if (call->anchors > kMaxAnchors)
      return invalid("attention: " + std::to_string(call->anchors) + " anchors are more than a layer can have");
    CORTIQ_ASSIGN_OR_RETURN(call->q_still,
                            resolver.f32_slot(attention.q_still(), call->heads * kv.k_dim, "still queries"));
    CORTIQ_ASSIGN_OR_RETURN(call->anchor_keys,
                            resolver.vector(attention.sink_k(), kv.kv_heads * call->anchors * kv.k_dim, "anchor keys"));
    CORTIQ_ASSIGN_OR_RETURN(
        call->anchor_values,
        resolver.vector(attention.sink_v(), kv.kv_heads * call->anchors * kv.v_dim, "anchor values"));
  }
  if (const auto* windows = attention.group_windows(); windows && windows->size() != 0) {
    if (windows->size() != kv.kv_heads)
      return invalid("attention: " + std::to_string(windows->size()) + " windows for " + std::to_string(kv.kv_heads) +
                     " key/value heads");
    for (const uint32_t window : *windows) {
      if (window == 0 || kv.window == 0 || window > kv.window)
        return invalid("attention: a window of " + std::to_string(window) + " is not within the cache's " +
                       std::to_string(kv.window));
      call->group_windows.push_back(window);
    }
  }
  call->scale = attention.scale();
  call->softcap = attention.softcap();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
