// Causal attention over a layer's cache: online softmax in chunks of 512 positions, which are added up in ascending
// order.
//
// Chunks, and the blocks in them, lie at fixed positions of the context. What a row (one query head of one token) sums
// in which order depends on its own position only: not on the batch it came in, nor on who computed which chunk. So a
// few tokens over a long context can be cut by chunks as well as by heads: each item leaves the sums of its chunk, and
// the item that is the last of its heads to finish adds them up.

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "formats/checked_math.h"
#include "runtime/ops/attention_rows.h"
#include "runtime/ops/attention_tiles.h"
#include "runtime/ops/op.h"
#include "runtime/ops/result_slots.h"
#include "runtime/overlay/overlay.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/attention.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "runtime/ops/attention_rows-inl.h"
#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

void QuantizeHeads(const float* x, uint64_t begin, uint64_t end, uint64_t k, uint8_t* record, bool bf16) {
  quantize_range(x, begin, end, k, record, bf16);
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
HWY_EXPORT(MergeRows);
HWY_EXPORT(QuantizeHeads);

constexpr uint64_t kMaxAnchors = 65536;
constexpr uint64_t kQueries = 16; // tokens of an item: they share the keys and values that the item reads
constexpr uint64_t kChunk = kAttentionChunk;
// Items a worker gets at least, where heads and positions allow it.
constexpr uint64_t kItemsPerWorker = 4;
// Room for the sums of chunks is made for this many tokens at once (drafts that are checked together), of a long
// context for as many as fit kPartBytes.
constexpr uint64_t kPartTokens = 8;
constexpr uint64_t kPartBytes = uint64_t{64} << 20;

uint64_t align64(uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// How a step's work is cut. Items: [unit of heads][query block][head of the unit], or [unit of heads][chunk].
struct Cut {
  uint64_t heads = 1;        ///< query heads of a unit
  uint64_t units = 1;        ///< of all heads
  uint64_t query_blocks = 1; ///< of kQueries tokens
  uint64_t parts = 1;        ///< of a unit: its heads, where they are items, or one
  uint64_t first_chunk = 0;
  uint64_t chunks = 0; ///< 0: an item goes through all positions of its tokens
  uint64_t items() const { return units * (chunks != 0 ? chunks : query_blocks * parts); }
};

/// Query heads of one KV head and tokens of the batch.
struct Piece {
  uint64_t head, heads;
  uint64_t first, last; ///< tokens
  uint64_t rows() const { return heads * (last - first); }
};

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
    return {(end - first) * kv.kv_heads * (kv.key_group_bytes(step.kv_type) / 16 + kv.value_row_bytes(step.kv_type)),
            2 * pairs * heads * (kv.k_dim + kv.v_dim)};
  }
  uint64_t items(const StepShape& shape) const override { return cut(shape).items(); }
  uint64_t together(const StepShape& shape) const override { return cut(shape).parts; }
  bool by_position() const override { return true; }
  bool by_sequence() const override { return true; }
  uint64_t scratch_bytes() const override {
    return 2 * align64(most_rows() * sizeof(AttentionRow)) + 2 * align64(most_rows() * kv.v_stride() * sizeof(float)) +
           align64(kQueries * (heads_inseparable() ? heads : group()) * kv.v_dim * sizeof(float)) +
           (on_tiles ? attention_tiles_scratch_bytes(kv.k_dim, kv.v_stride()) : 0);
  }
  SharedNeeds shared_needs(uint64_t positions) const override {
    const uint64_t seen = kv.window != 0 ? std::min(positions, kv.window + kPartTokens) : positions;
    const uint64_t one = (seen / kChunk + 2) * heads * part_floats() * sizeof(float);
    return {heads, std::max(one, std::min(kPartTokens * one, kPartBytes / 64 * 64))};
  }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const Cut how = cut(shape);
    const Room room = lay_out(scratch);
    for (uint64_t item = begin, next; item < end; item = next) {
      next = item + 1;
      if (how.chunks != 0) {
        run_chunk(step, shape, how, item / how.chunks, item % how.chunks, room);
        continue;
      }
      const uint64_t part = item % how.parts;
      next = std::min(end, item - part + how.parts);
      const auto [unit, block] = place(how, shape.threads, item / how.parts);
      const uint64_t first = shape.first + block * kQueries;
      const uint64_t last = std::min(first + kQueries, shape.first + shape.count);
      Heads mine = heads_of(how, unit);
      if (how.parts > 1)
        mine = {mine.first + part, next - item};
      run_queries(step, shape, mine, first, last, room);
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
  bool on_tiles = false;               ///< a prompt's tokens attend on tiles of bf16

private:
  /// A worker's scratch.
  struct Room {
    AttentionRow *totals, *parts;
    float *total_sums, *part_sums;
    float* results; ///< [token][head of the unit][v_dim]
    uint8_t* tiles; ///< attention_tiles_scratch_bytes()
  };

  uint64_t group() const { return heads / kv.kv_heads; }
  uint64_t most_rows() const { return kQueries * group(); }
  /// Groups of a q8a record may not be shared by two items.
  bool heads_inseparable() const { return act_out.present && kv.v_dim % 32 != 0; }
  /// Sums of a row over a chunk: of its values, then its largest score and the sum of its weights.
  uint64_t part_floats() const { return kv.v_stride() + 16; }

  Room lay_out(uint8_t* scratch) const {
    auto take = [&](uint64_t bytes) { return std::exchange(scratch, scratch + align64(bytes)); };
    Room room;
    room.totals = reinterpret_cast<AttentionRow*>(take(most_rows() * sizeof(AttentionRow)));
    room.parts = reinterpret_cast<AttentionRow*>(take(most_rows() * sizeof(AttentionRow)));
    room.total_sums = reinterpret_cast<float*>(take(most_rows() * kv.v_stride() * sizeof(float)));
    room.part_sums = reinterpret_cast<float*>(take(most_rows() * kv.v_stride() * sizeof(float)));
    room.results =
        reinterpret_cast<float*>(take(kQueries * (heads_inseparable() ? heads : group()) * kv.v_dim * sizeof(float)));
    room.tiles = scratch;
    return room;
  }

  /// Depends on the number of threads; the results do not.
  Cut cut(const StepShape& shape) const {
    Cut how;
    how.query_blocks = formats::ceil_div(shape.count, kQueries);
    const uint64_t position = shape.position + shape.first, end = position + shape.count;
    how.first_chunk = (kv.window != 0 && position + 1 > kv.window ? position + 1 - kv.window : 0) / kChunk;
    const uint64_t chunks = formats::ceil_div(end, kChunk) - how.first_chunk;
    const uint64_t part_bytes = chunks * shape.count * heads * part_floats() * sizeof(float);
    if (shape.threads > 1 && how.query_blocks == 1 && chunks > 1 && part_bytes <= shape.shared.size)
      how.chunks = chunks;
    if (heads_inseparable()) {
      how.heads = heads;
      return how;
    }
    // Rows of one KV head share what they read, so heads are the last thing that is cut.
    how.heads = group();
    how.units = kv.kv_heads;
    if (shape.threads > 1 && how.query_blocks > 1) {
      how.parts = how.heads;
      return how;
    }
    while (shape.threads > 1 && how.heads > 1 && how.items() < kItemsPerWorker * shape.threads) {
      how.heads = (how.heads + 1) / 2;
      how.units = kv.kv_heads * formats::ceil_div(group(), how.heads);
    }
    return how;
  }

  struct Item {
    uint64_t unit, block; ///< of heads, and of queries
  };
  /// Which unit and queries an item is. The last queries see most positions: they come first, so that the end of the
  /// stage is fine grained. Of a worker's share, a run of items, each unit has the same part where that comes out even:
  /// then all workers read the same heads' cache at the same time, and it is fetched for all of them once.
  static Item place(const Cut& how, uint64_t threads, uint64_t item) {
    const uint64_t workers = how.query_blocks % threads == 0 ? threads : 1;
    const uint64_t each = how.query_blocks / workers, share = how.units * each;
    const uint64_t worker = item / share, unit = item % share / each, rank = item % each;
    return {unit, how.query_blocks - 1 - (worker + workers * rank)};
  }

  struct Heads {
    uint64_t first, count;
  };
  Heads heads_of(const Cut& how, uint64_t unit) const {
    if (heads_inseparable())
      return {0, heads};
    const uint64_t each = how.units / kv.kv_heads; // units of a KV head
    const uint64_t done = unit % each * how.heads;
    return {unit / each * group() + done, std::min(how.heads, group() - done)};
  }

  /// Calls `use` with the part of `unit` that each KV head has.
  template <class Use>
  void for_each_piece(const Heads& unit, uint64_t first, uint64_t last, Use use) const {
    for (uint64_t done = 0; done < unit.count; done += std::min(unit.count, group()))
      use(Piece{unit.first + done, std::min(unit.count, group()), first, last});
  }

  void run_queries(const StepContext& step, const StepShape& shape, const Heads& mine, uint64_t first, uint64_t last,
                   const Room& room) const {
    for_each_piece(mine, first, last, [&](const Piece& piece) {
      begin_totals(step, piece, room);
      const uint64_t chunks = formats::ceil_div(step.position + last, kChunk);
      for (uint64_t chunk = room.totals[0].begin / kChunk; chunk < chunks; ++chunk) {
        const uint64_t row =
            attend(step, shape, piece, chunk, room, [&](uint64_t r) { return room.part_sums + r * kv.v_stride(); });
        uint64_t count = 0;
        while (row + count < piece.rows() && sees(room.totals[row + count], chunk))
          ++count;
        HWY_DYNAMIC_DISPATCH(MergeRows)(room.totals + row, room.parts, count, kv.v_stride());
      }
      finish(step, piece, mine, room);
    });
    emit(step, mine, first, last, room.results);
  }

  void run_chunk(const StepContext& step, const StepShape& shape, const Cut& how, uint64_t unit, uint64_t index,
                 const Room& room) const {
    const Heads mine = heads_of(how, unit);
    const uint64_t first = shape.first, last = shape.first + shape.count;
    auto* sums = reinterpret_cast<float*>(shape.shared.bytes);
    auto part = [&](uint64_t chunk, const Piece& piece, uint64_t row) {
      const uint64_t token = row / piece.heads, head = piece.head + row % piece.heads;
      return sums + (((chunk - how.first_chunk) * shape.count + token) * heads + head) * part_floats();
    };
    const uint64_t chunk = how.first_chunk + index;
    for_each_piece(mine, first, last, [&](const Piece& piece) {
      begin_totals(step, piece, room);
      const uint64_t row = attend(step, shape, piece, chunk, room, [&](uint64_t r) { return part(chunk, piece, r); });
      for (uint64_t r = row; r < piece.rows() && sees(room.totals[r], chunk); ++r) {
        float* kept = room.parts[r - row].acc + kv.v_stride();
        kept[0] = room.parts[r - row].max;
        kept[1] = room.parts[r - row].sum;
      }
    });
    // Whoever is last sees what the others stored, and leaves the counter as the next step wants it.
    std::atomic_ref<uint64_t> finished(*reinterpret_cast<uint64_t*>(shape.shared.counters + unit * 64));
    if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 != how.chunks)
      return;
    finished.store(0, std::memory_order_relaxed);
    for_each_piece(mine, first, last, [&](const Piece& piece) {
      begin_totals(step, piece, room);
      for (uint64_t r = 0; r < piece.rows(); ++r) {
        AttentionRow& total = room.totals[r];
        for (uint64_t c = total.begin / kChunk; c * kChunk < total.end; ++c) {
          float* kept = part(c, piece, r);
          const AttentionRow row{nullptr, kept, 0, 0, kept[kv.v_stride()], kept[kv.v_stride() + 1]};
          HWY_DYNAMIC_DISPATCH(MergeRows)(&total, &row, 1, kv.v_stride());
        }
      }
      finish(step, piece, mine, room);
    });
    emit(step, mine, first, last, room.results);
  }

  static bool sees(const AttentionRow& row, uint64_t chunk) {
    return row.begin < (chunk + 1) * kChunk && row.end > chunk * kChunk;
  }

  /// Empty sums of the piece's rows: token by token, so that what they see ascends.
  void begin_totals(const StepContext& step, const Piece& piece, const Room& room) const {
    const uint64_t kv_head = piece.head / group();
    const uint64_t window = group_windows.empty() ? kv.window : group_windows[kv_head];
    std::fill_n(room.total_sums, piece.rows() * kv.v_stride(), 0.0f);
    AttentionRow* row = room.totals;
    for (uint64_t token = piece.first; token < piece.last; ++token) {
      const uint64_t end = step.position + token + 1;
      const uint64_t begin = window != 0 && end > window ? end - window : 0;
      for (uint64_t head = piece.head; head < piece.head + piece.heads; ++head, ++row)
        *row = {q.f32(step.arena, token) + head * kv.k_dim,
                room.total_sums + (row - room.totals) * kv.v_stride(),
                begin,
                end,
                -std::numeric_limits<float>::infinity(),
                0};
    }
  }

  /// Sums the chunk for those of the piece's rows that see some of it: room.parts[0] is that of the first of them,
  /// whose number is returned. `place(row)` is where the sum of values goes.
  template <class Place>
  uint64_t attend(const StepContext& step, const StepShape& shape, const Piece& piece, uint64_t chunk, const Room& room,
                  Place place) const {
    const uint64_t kv_head = piece.head / group();
    const KvType type = step.kv_type;
    AttentionTask task{room.parts,
                       0,
                       KvBlocks(step, kv, layer, kv_head),
                       kv.k_dim,
                       kv.v_stride(),
                       scale,
                       softcap,
                       type,
                       kv.key_group_bytes(type),
                       kv.value_row_bytes(type)};
    uint64_t first = 0;
    while (first < piece.rows() && !sees(room.totals[first], chunk))
      ++first;
    for (uint64_t r = first; r < piece.rows() && sees(room.totals[r], chunk); ++r) {
      const AttentionRow& total = room.totals[r];
      float* sums = place(r);
      std::fill_n(sums, kv.v_stride(), 0.0f);
      room.parts[task.count++] = {total.q,
                                  sums,
                                  std::max(total.begin, chunk * kChunk),
                                  std::min(total.end, (chunk + 1) * kChunk),
                                  -std::numeric_limits<float>::infinity(),
                                  0};
    }
    const uint64_t tiled = tile_rows(shape, piece), count = std::min(task.count, tiled - std::min(tiled, first));
    if (count != 0) {
      AttentionTask some = task;
      some.count = count;
      attend_on_tiles(some, room.tiles);
      task.rows += count;
      task.count -= count;
    }
    if (task.count != 0)
      HWY_DYNAMIC_DISPATCH(Attend)(task);
    return first;
  }

  /// Of the piece's rows, which are in the order of their tokens, those of a prompt's tokens, where these attend on
  /// tiles.
  uint64_t tile_rows(const StepShape& shape, const Piece& piece) const {
    const uint64_t end = shape.first + shape.prompt;
    return on_tiles ? piece.heads * (std::min(piece.last, end) - std::min(piece.first, end)) : 0;
  }

  /// Anchors, sinks and the division, into `room.results`.
  void finish(const StepContext& step, const Piece& piece, const Heads& unit, const Room& room) const {
    const uint64_t kv_head = piece.head / group();
    for (uint64_t r = 0; r < piece.rows(); ++r) {
      const uint64_t token = r / piece.heads, head = piece.head + r % piece.heads;
      if (anchors != 0)
        HWY_DYNAMIC_DISPATCH(AddAnchors)
      (room.totals[r], q_still.f32(step.arena, piece.first + token) + head * kv.k_dim,
       anchor_keys + kv_head * anchors * kv.k_dim, anchor_values + kv_head * anchors * kv.v_dim, anchors, kv.k_dim,
       kv.v_dim, scale);
      HWY_DYNAMIC_DISPATCH(FinishRow)
      (room.totals[r], sinks != nullptr, sinks ? sinks[head] : 0.0f, kv.v_dim,
       room.results + (token * unit.count + head - unit.first) * kv.v_dim);
    }
  }

  /// Writes a unit's results, and quantizes them when the next product wants that.
  void emit(const StepContext& step, const Heads& unit, uint64_t first, uint64_t last, float* results) const {
    const uint64_t width = unit.count * kv.v_dim, column = unit.first * kv.v_dim;
    for (uint64_t token = first; token < last; ++token) {
      float* result = results + (token - first) * width;
      cut_columns(step, mask, result, column, width);
      if (out.present) {
        float* row = out.f32(step.arena, token);
        std::memcpy(row + column, result, width * sizeof(float));
        if (column + width == out.elements)
          std::fill(row + out.elements, row + (out.elements + 15) / 16 * 16, 0.0f);
      }
      if (act_out.present)
        HWY_DYNAMIC_DISPATCH(QuantizeHeads)
      (result, column, column + width, heads * kv.v_dim, act_out.bytes(step.arena, token), act_out.bf16);
    }
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
  CORTIQ_RETURN_IF_ERROR(resolve_results(resolver, attention, width, "attention", call->out, call->act_out));
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
  // Products of prompts in bf16 are what the artifact asks for, and the machine then has tiles.
  call->on_tiles = call->act_out.present && call->act_out.bf16 && attention_tiles_usable();
  call->scale = attention.scale();
  call->softcap = attention.softcap();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
