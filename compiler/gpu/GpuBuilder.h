#pragma once

// Dispatches of shaders for the calls of a program. One file an operation (ops/), one row of the table below.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/spirv/specialise.h"
#include "compiler/gpu/GpuExperts.h"
#include "formats/artifact/artifact_generated.h"
#include "formats/artifact/shader_abi.h"
#include "formats/codec/codec.h"
#include "formats/layout/layout.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

namespace cortiq::compiler {

/// How a result can be made in 8 bits.
enum class EightBits {
  kNever,
  kBehind,     ///< in a step of its own
  kWholeGroups ///< by the dispatch that makes it, if its rows are whole groups of 32
};

/// What a row of results is made in: kSpecQuantOut.
enum class RowForm : uint32_t { kFloats, kEightBits, kHalf };

/// A slot on the GPU.
struct GpuPlace {
  uint32_t start = 0, stride = 0; ///< floats; start + column for a run of columns
  bool lanes = false;
};

/// Words of a dispatch's push constants that say where one of its rows is.
struct RowWords {
  formats::PushWord start, stride;
};
inline constexpr RowWords kRowInput{formats::kPushInput, formats::kPushInputStride},
    kRowOut{formats::kPushOut, formats::kPushOutStride}, kRowAux{formats::kPushAux, formats::kPushAuxStride},
    kRowThird{formats::kPushThird, formats::kPushThirdStride}, kRowBeta{formats::kPushBeta, formats::kPushBetaStride},
    kRowGate{formats::kPushGate, formats::kPushGateStride};
/// Says in `push` that the row is at `place`.
void putRow(std::vector<uint32_t>& push, RowWords words, const GpuPlace& place);

/// Bytes that every device of Vulkan can bind.
inline constexpr uint64_t kLeastRange = uint64_t{1} << 27;

/// Rows of a matrix; all of it, or a slice.
struct RowRange {
  uint64_t first, rows;
  uint32_t slice = 0xFFFFFFFF; ///< among the program's slices
};

/// The weights of an artifact, and those that were added in layout kPlanes. Forms of a program share them.
struct GpuWeights {
  artifact::ManifestT& manifest;
  std::vector<uint32_t>& copies; ///< of which weight each is one that stands behind the program's own
  GpuExperts experts = GpuExperts::kAll;
  bool half = false;            ///< prompts run on 16-bit matrices
  uint64_t range = kLeastRange; ///< bytes of a matrix from which on it also has a form in parts, of so many at most
  using Key = std::pair<uint32_t, uint32_t>; ///< weight and layout
  llvm::DenseMap<Key, uint32_t> matrices = llvm::DenseMap<Key, uint32_t>();
};

/// Makes the dispatches of one program. Lowering functions are given only calls that their refusal takes.
class GpuBuilder {
public:
  GpuBuilder(GpuWeights& weights, const artifact::ProgramT& program, artifact::GpuProgramT& out)
      : weights_(weights), manifest_(weights.manifest), program_(program), out_(out) {}

  const artifact::ProgramT& program() const { return program_; }
  const artifact::WeightT& weight(uint32_t index) const { return *manifest_.weights[index]; }
  uint64_t elements(uint32_t slot) const { return program_.buffers[slot]->elements; }
  GpuPlace place(uint32_t slot, uint64_t column = 0) const;
  /// Says in `push` that the row is at the slot's place, if there is a slot.
  void putSlot(std::vector<uint32_t>& push, RowWords words, uint32_t slot, uint64_t column = 0) const;
  GpuExperts experts() const { return weights_.experts; }
  /// Positions that the cache of `layer` keeps; 0 = all.
  uint32_t ring(uint32_t layer) const;
  /// Whether what is lowered is for batches of one token.
  bool single() const { return single_; }
  void setSingle() { single_ = true; }
  /// Whether it is for so many positions that attention cuts the cache into shares.
  bool far() const { return far_; }
  void setFar() { far_ = true; }
  /// Whether attention took shares of a cache since setFar().
  bool cut() const { return cut_; }
  void noteCut() { cut_ = far_; }
  void dispatchBehind(artifact::GpuDispatchT dispatch) { add(behind_, std::move(dispatch)); }
  uint32_t maxBatch() const { return manifest_.max_batch; }
  /// What a cache holds, unless something else is asked for when the artifact is loaded.
  codegen::SpecValue cacheKind() const {
    return {formats::kSpecCache, manifest_.kv_f16 ? formats::kCacheF16 : formats::kCacheF32, /*open=*/true};
  }
  /// Modules are made for devices without operations of subgroups too.
  void setPlain() { plain_ = true; }

  /// A module of `name` with these constants.
  StatusOr<uint32_t> module(std::string_view name, std::vector<codegen::SpecValue> constants);
  /// The start of an f32 vector among those of kBindVectors.
  uint32_t vector(uint32_t weight);
  /// Room for `floats` among the vectors, which is filled at load; its start.
  uint64_t reserveVector(uint64_t floats);
  /// The matrix in a layout that the GPU reads, made when it is asked for first.
  StatusOr<uint32_t> matrix(uint32_t weight, formats::LayoutId layout = formats::LayoutId::kPlanes);
  /// The slices, of multiples of `step` rows, that a device takes that binds less than the matrix; none for one that
  /// any device can bind. So many as `together` are bound at once.
  StatusOr<std::vector<RowRange>> slices(uint32_t weight, uint64_t step, uint64_t together = 1);
  /// Matrices of equal shape and codec in layout kPlanes, side by side: the first, and how far they are apart in units
  /// of 16 bytes.
  struct Stack {
    uint32_t first, units;
  };
  StatusOr<Stack> stack(const std::vector<uint32_t>& weights);
  /// f32 vectors whose sizes are multiples of 16 bytes, one behind the other among those of kBindVectors; the start of
  /// the first.
  uint32_t vectors(const std::vector<uint32_t>& weights);
  /// The start of these words among what kBindVectors has.
  uint32_t words(const std::vector<uint32_t>& table);
  /// Columns of a token's row of rotation table `table`: words of the step buffer of its cosines and sines.
  std::pair<uint32_t, uint32_t> rotation(uint32_t table) const;
  /// A copy of `slot` in lane order, made in a step of its own in front of this one; the slot itself when it has that
  /// order.
  StatusOr<GpuPlace> inLanes(uint32_t slot, uint64_t column, uint64_t elements);

  void dispatch(artifact::GpuDispatchT dispatch) { add(current_, std::move(dispatch)); }
  /// `part` is one of those that run in place of `whole` where the device binds less than its matrix.
  void addPart(artifact::GpuDispatchT& whole, artifact::GpuDispatchT part) { add(whole.parts, std::move(part)); }
  /// What has to be in force for all that is dispatched from here on; nothing by default.
  void setWhen(std::optional<artifact::GpuWhenT> when);
  /// The number of the row of bits that `bits` is for a result of so many columns.
  uint32_t maskRow(const artifact::MaskBitsT& bits, uint64_t columns);
  /// The mask in force cuts `slot`, in a step of its own behind all others of this one; not where it skips `gate`.
  Status cutBehind(uint32_t slot, const artifact::MaskBitsT& bits, uint32_t gate);
  /// `out` becomes a copy of `from`, of `elements` values, in a step of its own behind this one.
  Status copyBehind(const GpuPlace& from, const GpuPlace& out, uint64_t elements);

  /// Steps: everything dispatched between begin and end is one, behind what was prepared for it.
  void beginStep(bool head, std::string name);
  void endStep(std::vector<std::unique_ptr<artifact::GpuStepT>>& steps);
  /// Products that read `slot` find a row that lacks the factor of its norm.
  struct Unfinished {
    uint32_t squares, parts; ///< where the sum of squares lies, in so many parts
    float eps;
  };
  void leaveUnfinished(uint32_t slot, const Unfinished& norm) { unfinished_[slot] = norm; }
  const Unfinished* unfinished(uint32_t slot) const {
    const auto found = unfinished_.find(slot);
    return found == unfinished_.end() ? nullptr : &found->second;
  }
  /// Slots whose rows are in 8 bits (shaders/common/q8.glsl).
  void setEightBits(uint32_t slot) { eightBits_.insert(slot); }
  bool eightBits(uint32_t slot) const { return eightBits_.contains(slot); }
  /// Whether steps of prompts may run on 16-bit matrices: what is in 8 bits is in f16 there (common/half_row.glsl).
  bool half() const { return half_ && !single_; }
  void setHalf() { half_ = true; }
  /// Whether what is dispatched is for those steps only.
  bool onlyHalf() const { return onHalf_ == artifact::GpuHalf::Only; }
  /// Floats of scratch a token, of this step.
  GpuPlace scratch(uint64_t elements);
  /// `slot` becomes what `from` holds, in 8 bits, in a step of its own behind this one.
  Status quantizeBehind(const GpuPlace& from, uint32_t slot, uint64_t elements);
  /// For steps of prompts on 16-bit matrices: rows at `out`, of which a token has `each`, become what those at `from`
  /// hold, in f16, in a step of its own behind this one.
  Status halfBehind(const GpuPlace& from, const GpuPlace& out, uint64_t elements, uint32_t each = 1);
  /// A result that dispatches may leave in 8 bits themselves, of `each` rows a token: `make` is given where it goes and
  /// whether in 8 bits, a second time, in f32, where steps of prompts want f16.
  using MakeResult = llvm::function_ref<Status(const GpuPlace& out, bool eightBits)>;
  Status makeResult(uint32_t slot, uint64_t elements, uint32_t each, MakeResult make);
  /// A result that dispatches leave in whatever form readers want: `make` is given where it goes and in which form, a
  /// second time where steps of prompts want another one.
  using MakeRow = llvm::function_ref<Status(const GpuPlace& out, RowForm form)>;
  Status makeRow(uint32_t slot, MakeRow make);
  /// Where a call that leaves its result in natural or lane order is to put it: at its first slot's place, or in
  /// scratch if that is to be in 8 bits.
  GpuPlace resultPlace(uint32_t out, uint32_t actOut, uint64_t elements);
  /// The one slot of both, if there is one and it is to be in 8 bits; kAbsent otherwise. A call that can make it so
  /// uses makeRow in place of resultPlace and finishResults.
  uint32_t onlyEightBits(uint32_t out, uint32_t actOut) const;
  /// What is to be done behind that call, for both its slots, of which one may be absent.
  Status finishResults(const GpuPlace& from, uint32_t out, uint32_t actOut, uint64_t elements);
  /// Room for `parts` floats of one token, until the next but one is asked for.
  StatusOr<uint32_t> squares(uint64_t parts);
  static constexpr uint64_t kSquaresFloats = 16384;
  void setSquaresStart(uint64_t start) { squaresStart_ = start; }

  uint64_t scratchFloats() const { return mostScratch_; }
  void setScratchStart(uint64_t start) { scratchStart_ = start; }

private:
  using Dispatches = std::vector<std::unique_ptr<artifact::GpuDispatchT>>;

  StatusOr<std::vector<uint32_t>> plainModule(std::string_view name, std::vector<codegen::SpecValue> constants);
  void add(Dispatches& list, artifact::GpuDispatchT dispatch);
  StatusOr<artifact::GpuDispatchT> copy(const GpuPlace& from, const GpuPlace& out, uint64_t elements);

  GpuWeights& weights_;
  artifact::ManifestT& manifest_;
  const artifact::ProgramT& program_;
  artifact::GpuProgramT& out_;
  llvm::StringMap<uint32_t> modules_;
  llvm::DenseMap<uint32_t, uint32_t> vectors_;
  std::map<std::vector<uint32_t>, uint32_t> words_;
  llvm::DenseMap<uint32_t, Stack> stacks_;        ///< by the first weight
  Dispatches prepared_, current_, behind_, cuts_; ///< steps in this order
  std::optional<artifact::GpuWhenT> when_;
  llvm::DenseMap<std::pair<uint32_t, uint64_t>, uint32_t> copied_; ///< slot and column: start
  llvm::DenseMap<uint32_t, Unfinished> unfinished_;                ///< by slot
  llvm::DenseSet<uint32_t> eightBits_;
  uint64_t squaresStart_ = 0, squaresUsed_ = 0;
  bool head_ = false, single_ = false, far_ = false, cut_ = false, plain_ = false, half_ = false;
  artifact::GpuHalf onHalf_ = artifact::GpuHalf::Both; ///< of what is dispatched now
  std::string name_;
  uint64_t scratchStart_ = 0, scratch_ = 0, mostScratch_ = 0;
};

/// What the dispatches that prepare heads for attention share.
struct HeadPrep {
  uint32_t pairs, flags, cosines, sines, qNorm, kNorm;
  GpuPlace q, k, v;
  void put(std::vector<uint32_t>& push) const;
};
HeadPrep headPrep(const artifact::AttentionPrepOpT& prep, GpuBuilder& builder);

/// A dispatch of operations with a state: of `groups` workgroups, each of which walks all tokens.
artifact::GpuDispatchT walkTokens(uint32_t state, uint64_t groups, const GpuBuilder& builder);
/// Invocations of such a workgroup that has columns of a head's state.
inline uint32_t deltaLocal(uint64_t valueDim) {
  return valueDim > 64 ? 128 : 64;
}

/// Rows of a dispatch that has one invocation a value.
struct ValueRows {
  GpuPlace input = {}, out = {};
  uint64_t elements = 0;
  const GpuPlace* aux = nullptr;
  uint32_t vector = 0; ///< start of what it has at kPushVector
  RowForm form = RowForm::kFloats;
};
Status dispatchValues(GpuBuilder& builder, std::string_view name, const ValueRows& rows,
                      std::vector<codegen::SpecValue> constants);

/// Both calls in one dispatch, for a single token.
Status lowerAttentionStep(const artifact::AttentionPrepOpT& prep, const artifact::AttentionOpT& attention,
                          GpuBuilder& builder);

/// What both shaders of attention are specialised for, with `local` invocations a workgroup.
std::vector<codegen::SpecValue> attentionConstants(const artifact::AttentionOpT& attention, uint32_t local,
                                                   const GpuPlace& out, const GpuBuilder& builder);

/// Attention of another shader, with windows of head groups or with anchors (ops/attention_anchored.cpp).
bool isAnchored(const artifact::AttentionOpT& attention);
std::string refuseAnchored(const artifact::AttentionOpT& attention, const GpuBuilder& builder);
Status lowerAnchored(const artifact::AttentionOpT& attention, GpuBuilder& builder);

/// Positions from which on a single token's attention over a cache takes shares, and how many it takes then; 1 = none.
inline constexpr uint32_t kFarFrom = 256;
uint32_t attentionShares(uint32_t layer, uint32_t heads, const GpuBuilder& builder);

/// One operation that has a form on the GPU.
struct GpuOpRow {
  artifact::Op op;
  /// Why this call has none; empty when it has.
  std::string (*refuse)(const artifact::OpUnion& op, const GpuBuilder& builder);
  Status (*lower)(const artifact::OpUnion& op, GpuBuilder& builder);
  /// Slots that it reads in lane order.
  std::vector<uint32_t> (*lanes)(const artifact::OpUnion& op);
  bool writesLanes; ///< its results may be in lane order
  EightBits eightBits = EightBits::kNever;
};
const GpuOpRow* findGpuOp(artifact::Op op);

// Rows of operations, in their files.
extern const GpuOpRow kGpuAdd, kGpuAttention, kGpuAttentionPrep, kGpuCausalConv, kGpuClusterLogits, kGpuConcatHeads,
    kGpuEmbed, kGpuGate, kGpuGatedDelta, kGpuGlu, kGpuHadamard, kGpuKda, kGpuLayerGate, kGpuLogits, kGpuMatmul,
    kGpuNorm, kGpuPlace, kGpuQuantize, kGpuResonance, kGpuShortConv, kGpuTap, kGpuVmfPhase;

/// The dispatches behind a step that choose the largest logit of every head token.
Status lowerArgmax(GpuBuilder& builder, uint32_t logits);
/// The dispatch that leaves the `count` largest logits of every share of the row; how many shares there are. Where they
/// go, and what they are asked for, is set at load.
StatusOr<uint32_t> lowerTopLogits(GpuBuilder& builder, uint32_t logits, uint32_t count);
/// The dispatch that tells the host that a step is done.
Status lowerFinish(GpuBuilder& builder);

inline std::vector<uint32_t> noLanes(const artifact::OpUnion&) {
  return {};
}
inline constexpr uint32_t kAbsent = 0xFFFFFFFF;
uint32_t bitsOf(float value);
inline uint64_t ceilDiv(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}
/// Floats of a row of `elements` in lane order.
inline uint64_t laneRow(uint64_t elements) {
  return ceilDiv(elements, formats::kShaderRowPadding) * formats::kShaderRowPadding;
}
/// "matmul_q8_0", empty when there is no such template for the weight's codec.
std::string codecTemplate(std::string_view op, const artifact::WeightT& weight);
/// Why the GPU cannot run `op` on matrix `index`; empty when it can.
std::string refuseMatrix(std::string_view op, uint32_t index, const GpuBuilder& builder);
/// Why vector `index`, or one of `weights`, cannot be one of kBindVectors; empty when it can, or is absent.
std::string refuseVector(uint32_t index, const GpuBuilder& builder);
std::string refuseVectors(const std::vector<uint32_t>& weights, const GpuBuilder& builder);

} // namespace cortiq::compiler
