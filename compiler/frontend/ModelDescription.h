#pragma once

// A model as every front end describes it: canonical tensor names (CMF specification 3.1), plain numbers, no container.
// The decoder builder turns it into IR without knowing which file it came from.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "dialects/CMF/IR/CMF.h"
#include "formats/overlay/catalog.h"
#include "formats/tensor.h"

namespace cortiq::compiler {

/// One weight: the file's tensor, and which of its rows in which order (see #cmf.rows).
struct WeightRef {
  const formats::Tensor* tensor = nullptr;
  std::vector<int64_t> shape; ///< {rows, cols} or {values}, of the weight, not of the tensor
  int64_t first = 0;          ///< first row of the tensor that is taken
  int64_t deinterleave = 0;   ///< head size whose neighbouring rotary pairs become half-split ones; 0 = none
  int64_t take = 0;           ///< rows taken of every `period`; 0 = all
  int64_t period = 0;
};

/// What a skill puts in the place of a weight.
struct SkillWeight {
  int64_t skill = 0; ///< index into ModelDescription::overlay
  WeightRef weight;
};

/// A table of rotary frequencies; empty where a layer does not rotate.
struct RopeTable {
  std::vector<float> inverseFrequencies;
  float magnitude = 1;

  bool operator==(const RopeTable&) const = default;
};

/// What brings tokens together in a layer. A mixer is one file in mixers/, and one row of its table.
enum class Mixer {
  kAttention,
  kGatedDelta,      ///< gated delta linear attention
  kKda,             ///< Kimi delta attention
  kShortConv,       ///< a convolution over time between two gates
  kVmfPhase,        ///< linear attention on phases
  kVmfPhaseDelta,   ///< the same with the delta correction
  kLatentAttention, ///< keys and values from one latent vector (MLA)
};

/// What a layer does with each token by itself. One file in feed_forward/, and one row of its table.
enum class FeedForward {
  kGated,       ///< down(activation(gate(x)) * up(x))
  kExperts,     ///< a router, experts, perhaps a shared expert
  kPlain,       ///< down(activation(up(x)))
  kDualExperts, ///< a gated block beside experts, each with norms of its own (Gemma 4)
};

/// How a layer's experts are chosen and weighed; see #cmf.routing.
struct RoutingDescription {
  int64_t experts = 0; ///< 0 = none
  int64_t topK = 0;
  cmf::Scoring scoring = cmf::Scoring::softmax;
  std::optional<double> normEpsilon = std::nullopt; ///< weights are divided by their sum plus this
  std::optional<double> normMinimum = std::nullopt; ///< or by the larger of their sum and this
  double scale = 1;
  int64_t groups = 1;
  int64_t groupsUsed = 1;
  bool resonance = false; ///< descriptors in place of a router's matrix
};

/// Sizes of the linear attentions of a model, those that its kind has.
struct LinearAttention {
  int64_t keyHeads = 0, valueHeads = 0;
  int64_t keyDim = 0, valueDim = 0;
  int64_t phases = 0;
  bool tiledHeads = false;          ///< value head h uses key head h % keyHeads, not h / (valueHeads / keyHeads)
  bool decayRates = false;          ///< A_log holds -exp(A_log)
  std::optional<double> decayBound; ///< lower bound of the log decay, in the models that have one
};

/// What differs from layer to layer.
struct LayerDescription {
  Mixer mixer = Mixer::kAttention;
  FeedForward feedForward = FeedForward::kGated;
  RoutingDescription routing;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  int64_t vDim = 0;
  std::optional<int64_t> window;     ///< keys seen, the current one included
  std::vector<int64_t> groupWindows; ///< of each key/value head, within `window`; empty = that
  bool ring = false;                 ///< what is older than `window` is forgotten for good
  size_t rope = 0;                   ///< index into ModelDescription::ropes
  std::optional<int64_t> block; ///< number in the names of its tensors, where that is not its own: of looped layers
  int64_t cache = 0;            ///< number of its keys and values: set by the decoder builder
  double outputScale = 1;       ///< of the stream behind the layer
  cmf::GateFunction gate = cmf::GateFunction::softplus; ///< what a projected gate (self_attn.g_proj) goes through
};

/// A block behind the trunk that guesses the token after the next one. Its tensors are named as block kDraftBlock.
struct DraftDescription {
  LayerDescription layer;
};

/// Sizes of multi-head latent attention. A head of queries or keys has `nope` features that do not turn and `rope` that
/// do; keys and values come from a latent vector of `rank`.
struct LatentAttention {
  int64_t rope = 0, nope = 0, value = 0, rank = 0;
};

/// A Walsh-Hadamard transform of the input of some weights (see cmf.hadamard), and its inverse behind the embedding.
struct HadamardTransform {
  int64_t block = 0;                             ///< 0 = none
  bool half = false;                             ///< results are rounded to f16
  std::map<int64_t, std::vector<bool>> negative; ///< signs, by the number of features
  std::set<std::string> weights;                 ///< names of the files' tensors
};

/// Queries grow with the position: times 1 + scale * ln(1 + floor(position / length)).
struct QueryTemperature {
  double length = 0;
  double scale = 0; ///< 0 = none
};

/// A dense decoder. Sizes are positive and below kMaxModelSize; every weight fits them.
struct ModelDescription {
  std::string architecture; ///< "llama", "qwen2", …, as the file has it
  std::string name;         ///< the file's own title, or empty
  int64_t hidden = 0;
  int64_t vocab = 0;
  int64_t trainedContext = 0;

  double eps = 0;
  bool unitOffsetNorms = false; ///< norm factor 1 + w
  bool layerNorms = false;      ///< norms of rows subtract the mean, and add a bias where there is one
  cmf::Activation activation = cmf::Activation::silu;
  double activationAlpha = 0; ///< the numbers of situ and swigluoai
  double activationLimit = 0;
  double embedScale = 1;
  double attentionScale = 0;
  double attentionSoftcap = 0; ///< 0 = none
  double finalSoftcap = 0;     ///< 0 = none
  double logitScale = 1;
  double residualScale = 1; ///< of what each mixer and feed-forward block adds to the stream
  QueryTemperature queryTemperature;
  LatentAttention latent; ///< of the layers that have it
  bool qkNormAfterRope = false;
  bool qkNormWhole = false; ///< norms of queries and keys run over all heads together
  bool valueNorm = false;   ///< weightless norm of every value head

  int64_t loopLength = 0; ///< the final norm also follows every so many layers but the last ones; 0 = it does not

  HadamardTransform hadamard;
  LinearAttention linear;
  std::vector<RopeTable> ropes;
  std::vector<LayerDescription> layers;
  std::optional<DraftDescription> draft;
  std::map<std::string, WeightRef> weights; ///< by canonical name

  formats::OverlayCatalog overlay;                              ///< skills and task masks
  std::map<std::string, std::vector<SkillWeight>> alternatives; ///< of weights that skills replace

  /// What a user should know though the model is built: one sentence each.
  std::vector<std::string> warnings;

  /// The layer whose tensors are named as block `block`; the first one, of looped layers.
  LayerDescription& layer(int64_t block) { return block < 0 ? draft->layer : layers[block]; }
  const LayerDescription& layer(int64_t block) const { return block < 0 ? draft->layer : layers[block]; }

  const WeightRef* find(const std::string& name) const {
    auto it = weights.find(name);
    return it == weights.end() ? nullptr : &it->second;
  }
};

/// No size of a model reaches this; products of two sizes stay far within 64 bits.
inline constexpr int64_t kMaxModelSize = int64_t{1} << 24;

/// The number that stands for the block that guesses wherever blocks are numbered.
inline constexpr int64_t kDraftBlock = -1;

/// "model.layers.3." + suffix; "model.mtp.layers.0." + suffix of kDraftBlock.
std::string layerName(int64_t layer, std::string_view suffix);

/// Adds a table of rotary frequencies, rounded to f32; fails when one is not finite (an extreme base or factor).
Status addRope(ModelDescription& model, std::span<const double> frequencies, double magnitude);

/// Adds `tensor` under `name` as a weight of `shape`; fails, naming both shapes, when the tensor is not `fileRows` (the
/// weight's own rows when absent) x cols, and, naming its type, when it cannot be decoded. Dimensions of 1 do
/// not count.
Status addWeight(ModelDescription& model, const std::string& name, WeightRef weight,
                 std::optional<int64_t> fileRows = std::nullopt);

/// Adds rows [first, first + rows) of each expert's `each` rows in a stack of `experts` matrices (or, with `cols` 0, of
/// `experts` vectors) as one weight an expert: "`stem`.experts.E.`part`". Fails as addWeight() does.
Status addExpertStack(ModelDescription& model, const formats::Tensor& tensor, const std::string& stem,
                      std::string_view part, int64_t experts, int64_t each, int64_t first, int64_t rows, int64_t cols);

} // namespace cortiq::compiler
