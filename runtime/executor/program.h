#pragma once

// The resolved program: a flat list of stages of calls in which every index has become an address or a checked offset.
// Nothing in it is looked up, checked or allocated while it runs.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/executor/kv_type.h"
#include "runtime/memory/placement.h"

namespace cortiq::artifact {
struct Call;
} // namespace cortiq::artifact

namespace cortiq::runtime {

class ExpertStep;    // runtime/experts
struct OverlayState; // runtime/overlay

/// A buffer of the arena. Token t's value stands at arena + offset + t * stride.
struct SlotRef {
  uint64_t offset = 0;
  uint64_t stride = 0;
  uint64_t elements = 0;
  bool present = false;
  bool bf16 = false; ///< of quantized activations: the same in bf16 stand behind each record

  float* f32(uint8_t* arena, uint64_t token) const { return reinterpret_cast<float*>(bytes(arena, token)); }
  uint8_t* bytes(uint8_t* arena, uint64_t token) const { return arena + offset + token * stride; }
};

inline constexpr uint64_t kPositionBlock = 64; ///< attention reads whole blocks of positions

/// Shape of one layer's cache. Keys: [kv_heads][position / 16][k_dim][16], so that sixteen positions' scores are
/// computed side by side without a horizontal sum; values: [kv_heads][position][v_stride], v_stride = v_dim rounded up
/// to 16 with zeros behind. In q8, of keys: [kv_heads][position / 16][k_dim / 32]{[32][16] codes, [16] factors}; of
/// values: [kv_heads][position]{[v_stride / 32] factors, [v_stride] codes}, both divisions rounded up.
struct KvShape {
  uint64_t kv_heads = 0, k_dim = 0, v_dim = 0, window = 0;
  uint64_t ring = 0; ///< positions that are kept, a multiple of 64: position p stands at p % ring; 0 = all are kept
  /// Positions that the layer keeps in a cache of `positions`, the stride of its heads.
  uint64_t capacity(uint64_t positions) const { return ring != 0 && ring < positions ? ring : positions; }
  uint64_t v_stride() const { return (v_dim + 15) / 16 * 16; }
  /// Of sixteen positions of a head.
  uint64_t key_group_bytes(KvType type) const {
    if (type == KvType::kQ8)
      return (k_dim + kKvGroup - 1) / kKvGroup * (kKvGroup * 16 + 16 * sizeof(float));
    return k_dim * 16 * (type == KvType::kF16 ? 2 : 4);
  }
  /// Of one position of a head.
  uint64_t value_row_bytes(KvType type) const {
    if (type == KvType::kQ8)
      return (v_stride() + kKvGroup - 1) / kKvGroup * sizeof(float) + v_stride();
    return v_stride() * (type == KvType::kF16 ? 2 : 4);
  }
  /// Of a head, for a multiple of 16 positions.
  uint64_t key_bytes(KvType type, uint64_t positions) const { return positions / 16 * key_group_bytes(type); }
  uint64_t value_bytes(KvType type, uint64_t positions) const { return positions * value_row_bytes(type); }
};

/// One layer's cache of a session.
struct KvLayerState {
  uint8_t* keys = nullptr;
  uint8_t* values = nullptr;
};

/// Where a layer's keys and values stand in a page: those of kPositionBlock positions of each head, one head after the
/// other, laid out as in a cache of that many positions.
struct KvPageLayer {
  uint64_t key_offset = 0, value_offset = 0;
};

struct RopeTableRef {
  std::vector<float> inverse_frequencies;
  float magnitude = 1;
};

/// What a step works on; filled by the session, read by every call.
struct StepContext {
  uint8_t* arena = nullptr;
  const uint32_t* tokens = nullptr; ///< ids of the batch
  uint64_t position = 0;            ///< of the batch's first token
  KvType kv_type = KvType::kF32;
  uint64_t kv_positions = 0; ///< capacity of the caches that are no rings, a multiple of 64
  std::span<const KvLayerState> kv;
  /// A rope table's cosines and sines for the batch: [token][pair] of cos, then the same of sin.
  std::span<const float* const> rope_cos;
  std::span<const float* const> rope_sin;
  /// 1 + index of a layer whose key or value does not fit the cache's type; 0 = none.
  std::atomic<uint32_t>* kv_overflow = nullptr;
  std::span<float* const> states; ///< what recurrent operations carry from token to token
  /// Where they also leave what each state was behind the batch's first token; empty = nobody asks.
  std::span<float* const> kept_states = {};
  /// Only stages of this range run, whatever else is said.
  uint32_t first_stage = 0, end_stage = UINT32_MAX;
  bool draft = false; ///< the draft stages run, not the others; `tokens` are the ids that follow
  uint64_t first = 0; ///< token of the batch with which stages other than the head's begin
  /// Of the batch's tokens the first so many are a prompt's. Where prompts have kernels of their own, their products
  /// are made by those, however few they are, and never those of other tokens.
  uint64_t prompt = 0;
  bool stream = false; ///< head stages that make what drafts read run on all tokens
  /// Of mixtures only the experts run: choices below 0 name none, and nothing is added to the experts' sum.
  bool missing_experts = false;
  /// Of a model whose experts are not all in memory; null = all are where the artifact is mapped.
  ExpertStep* experts = nullptr;
  /// What is in force of the model's overlay; null = nothing to choose from.
  const OverlayState* overlay = nullptr;
  /// Sums of residual rows, by tap; null = nobody asks for them.
  double* const* taps = nullptr;
  /// Of caches in pages: page i has positions [i, i + 1) * kPositionBlock of all layers, and there are no rings. Empty:
  /// the caches are those of `kv`.
  std::span<uint8_t* const> pages = {};
  std::span<const KvPageLayer> page_layers = {};
};

/// Tokens [first, first + count) of a batch that belong to one sequence. `context` is what calls that say by_sequence()
/// get: its `position` is that of the sequence less `first`, so that position + token holds for the batch's numbers.
struct StepSegment {
  uint64_t first = 0, count = 0;
  StepContext context;
};

/// Bits of a task mask that cut the columns of a call's result: column c has bit first + c / group of the layer's row;
/// group 0: bit `first` decides for all.
struct MaskBits {
  enum class Kind { kNone, kNeurons, kHeads, kExperts };
  Kind kind = Kind::kNone; ///< experts are not columns: their choice asks for each bit itself
  uint64_t layer = 0, first = 0, group = 0;
};

/// Memory that the items of a call share, as much as SharedNeeds says; none where nobody gives any.
struct CallShared {
  uint8_t* counters = nullptr; ///< words 64 bytes apart, 0 before every step; the call leaves them so
  uint8_t* bytes = nullptr;    ///< of any content, aligned to 64
  uint64_t size = 0;           ///< of `bytes`
};
struct SharedNeeds {
  uint64_t counters = 0, bytes = 0;
};

/// Tokens of the batch that a call works on, and how the work is to be cut.
struct StepShape {
  uint64_t first = 0;
  uint64_t count = 0;
  unsigned threads = 1;
  uint64_t position = 0; ///< of the batch's first token; kept up to date for calls that say by_position()
  CallShared shared = {};
  uint64_t prompt = 0; ///< of `count` the first so many are a prompt's
};

/// What a call is, for people.
struct CallInfo {
  std::string name; ///< kernel symbol or op name
  uint64_t rows = 0, cols = 0;
  uint64_t weight_bytes = 0; ///< read once a step (more often when the batch is larger than a tile)
};

/// What a call reads and computes in a step.
struct CallWork {
  uint64_t bytes = 0;      ///< of weights and cache, each once
  uint64_t operations = 0; ///< of matrix work; a multiplication and its addition are two
};

/// One call of the program. Immutable; its work items may run in any order, on any worker, at the same time, unless
/// in_order() says otherwise.
class Call {
public:
  virtual ~Call() = default;
  virtual CallInfo info() const = 0;
  /// For profiles; where experts are chosen, what even choices would come to.
  virtual CallWork work(const StepContext&, const StepShape&) const { return {info().weight_bytes, 0}; }
  /// Work items for this shape; at least 1 when count is not 0.
  virtual uint64_t items(const StepShape& shape) const = 0;
  /// Neighbouring items, from a multiple of this number on, that share what they read or prepare: a worker that runs
  /// them in one go does less. They are handed out together while there is enough for everybody.
  virtual uint64_t together(const StepShape&) const { return 1; }
  /// Runs items [begin, end). `scratch` is the worker's own and has scratch_bytes(), aligned to 64.
  virtual void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
                   uint8_t* scratch) const = 0;
  virtual uint64_t scratch_bytes() const { return 0; }
  /// Whether all of it takes less than telling other workers of it, whatever its number of items.
  virtual bool brief(const StepShape&) const { return false; }
  /// The weights that items [begin, end) read, in their order; empty where they are not known before the step.
  virtual std::span<const uint8_t> weights_of(const StepShape&, uint64_t begin, uint64_t end) const {
    (void)begin, (void)end;
    return {};
  }
  /// Whether items() depends on StepShape::position.
  virtual bool by_position() const { return false; }
  /// Whether it reads or writes what belongs to a sequence: position, caches, states. In a batch of several sequences
  /// it then runs once for each segment.
  virtual bool by_sequence() const { return false; }
  /// Whether it is part of what a mixture does once its experts are chosen.
  virtual bool of_experts() const { return false; }
  /// Whether an item may wait for those before it, so that they have to be begun in their order.
  virtual bool in_order() const { return false; }
  /// For a cache of `positions`; `bytes` is a multiple of 64.
  virtual SharedNeeds shared_needs(uint64_t positions) const {
    (void)positions;
    return {};
  }

  // Set by the loader.
  MaskBits mask;
  std::optional<uint32_t> gate; ///< layer with whose gate the call is skipped
  uint32_t number = 0;          ///< among all calls of the program, alternatives included
};

using CallList = std::vector<std::unique_ptr<Call>>;

/// A place in a stage whose calls depend on the skill in force.
struct OverlayPoint {
  struct Alternative {
    uint32_t skill = 0;
    CallList calls;
  };
  uint32_t number = 0;           ///< among all points of the program
  uint32_t first = 0, count = 0; ///< the stage's own calls, which alternatives replace; there may be none
  std::vector<Alternative> alternatives;
  const artifact::Call* blend = nullptr; ///< what runs under a blend, once its weights are mixed; null = nothing else
};

struct Stage {
  CallList calls;
  std::vector<OverlayPoint> points; ///< ascending by `first`
  bool head = false;
  bool stream = false; ///< see artifact.fbs
  bool draft = false;
  std::string name;
};

/// A layer behind which the residual stream can be read.
struct ResidualTap {
  uint32_t layer = 0;
  uint64_t elements = 0;
};

struct ResolvedProgram {
  std::vector<Stage> stages;
  std::vector<KvShape> kv_layers;
  std::vector<RopeTableRef> rope_tables;
  std::vector<uint64_t> states; ///< numbers of each recurrent state
  SlotRef logits;
  SlotRef draft_logits;     ///< present in a program with draft stages
  SlotRef input;            ///< slot 0; what run_vectors() fills when there is no embedding
  uint64_t arena_bytes = 0; ///< for max_batch tokens
  uint64_t max_batch = 0;
  uint64_t embedding_rows = 0; ///< ids below it are legal; 0 = the program has no embedding
  uint64_t scratch_bytes = 0;  ///< the largest of its calls
  bool half_products = false;  ///< prompts are multiplied on tiles of 16-bit numbers
  uint32_t call_count = 0;     ///< alternatives included
  uint32_t point_count = 0;    ///< overlay points
  std::vector<ResidualTap> taps;

  /// How the arena and the workers' scratch lie. A tile takes a line of each of 16 tokens, so two threads of a core
  /// touch more small pages at once than its first translation buffer knows.
  Placement work_space(Placement placement) const {
    placement.large_pages = placement.large_pages || half_products;
    return placement;
  }
};

} // namespace cortiq::runtime
