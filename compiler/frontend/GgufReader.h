#pragma once

// What the architectures of GGUF files share: keys with the architecture's prefix, tensors by block, and the plain
// dense decoder. An architecture's file (arch/) says which of it applies.

#include "compiler/frontend/ModelDescription.h"
#include "formats/gguf/gguf_file.h"

namespace cortiq::compiler {

/// How a file's query and key rows pair up for rotation (GGUF models 2.4).
enum class RopePairing {
  kHalfSplit,  ///< NEOX: rows i and i + d/2
  kNeighbours, ///< NORM: rows 2i and 2i + 1; brought to half-split order
};

/// Where an expert's width comes from when expert_feed_forward_length is absent.
enum class ExpertWidth {
  kRequired,           ///< nowhere: the key must be there
  kFeedForward,        ///< feed_forward_length
  kFeedForwardPerUsed, ///< feed_forward_length / expert_used_count
};

/// What an architecture fixes about its experts (GGUF models 1.5).
struct ExpertTraits {
  cmf::Scoring scoring = cmf::Scoring::softmax; ///< where expert_gating_func does not say
  bool normalize = false;                       ///< the chosen weights are divided by their sum
  bool normalizeByKey = false;                  ///< or expert_weights_norm says whether
  ExpertWidth width = ExpertWidth::kFeedForwardPerUsed;
};

/// attn_q_norm and attn_k_norm.
enum class HeadNorms {
  kNone,
  kPerHead,     ///< one value a feature of a head
  kWholeVector, ///< one value a feature of all heads
};

/// How a file holds the matrices of a dense feed-forward block.
enum class GateTensors {
  kSeparate, ///< ffn_gate, ffn_up, ffn_down
  kFused,    ///< ffn_up holds the gate's rows, then its own
  kNone,     ///< no gate: ffn_up and ffn_down
};

/// A norm of every block: its word in the file, and the canonical one.
struct BlockNorm {
  const char* file;
  const char* canonical;
};

/// In front of the mixer and of the feed-forward block.
inline constexpr BlockNorm kPreNorms[] = {{"attn_norm", "input_layernorm"}, {"ffn_norm", "post_attention_layernorm"}};
/// The same under other names.
inline constexpr BlockNorm kRenamedPreNorms[] = {{"attn_norm", "input_layernorm"},
                                                 {"post_attention_norm", "post_attention_layernorm"}};
/// In front of both and behind both.
inline constexpr BlockNorm kSandwichNorms[] = {{"attn_norm", "input_layernorm"},
                                               {"post_attention_norm", "post_attention_layernorm"},
                                               {"ffn_norm", "pre_feedforward_layernorm"},
                                               {"post_ffw_norm", "post_feedforward_layernorm"}};
/// Behind both only.
inline constexpr BlockNorm kPostNorms[] = {{"post_attention_norm", "post_attention_layernorm"},
                                           {"post_ffw_norm", "post_feedforward_layernorm"}};

/// Which layers see only the latest keys (attention.sliding_window). Layer i does when i % pattern < pattern - 1,
/// unless the file has a pattern of its own.
struct WindowRule {
  int64_t pattern = 0; ///< 0 = the architecture has no such layers, whatever the keys say
  int64_t width = 0;   ///< without the key; 0 = no windows then
  bool required = false;
  bool ownRotation = false; ///< such layers rotate by rope.freq_base_swa and without any scaling
  double base = 0;          ///< rope.freq_base_swa without the key; 0 = rope.freq_base
};

/// What becomes of logit_scale.
enum class LogitScale { kNone, kMultiplies, kDivides };

/// What stands in place of attention in some layers.
enum class RecurrentMixer {
  kNone,
  kShortConv,  ///< in layers without key/value heads
  kGatedDelta, ///< in attention.recurrent_layers, or in all but every full_attention_interval-th layer
};

/// What distinguishes one plain dense decoder from another.
struct DecoderTraits {
  RopePairing pairing = RopePairing::kHalfSplit;
  bool rotatesWholeHead = false; ///< rope.dimension_count must equal the key length
  HeadNorms headNorms = HeadNorms::kNone;
  bool layerNorms = false; ///< LayerNorm with bias in place of RMS norm
  std::span<const BlockNorm> norms = kPreNorms;
  GateTensors gate = GateTensors::kSeparate;
  cmf::Activation activation = cmf::Activation::silu;
  WindowRule window = {};
  bool scales = false; ///< embedding_scale and residual_scale
  LogitScale logitScale = LogitScale::kNone;
  double attentionSoftcap = 0; ///< without their keys
  double finalSoftcap = 0;
  bool longFactors = false; ///< rope_factors_long and _short apply whatever rope.scaling.type says
  bool temperature = false; ///< attention.temperature_scale
  bool latent = false;      ///< multi-head latent attention
  bool sinks = false;       ///< attn_sinks: one more score a head
  RecurrentMixer recurrent = RecurrentMixer::kNone;
  bool tiledHeads = false;                ///< value head h of a gated delta uses key head h % (key heads)
  bool gatedQueries = false;              ///< attn_q holds, for each head, its queries and as many rows of a gate
  const char* outputNorm = "output_norm"; ///< what the file calls the norm in front of the head
  std::optional<ExpertTraits> experts = std::nullopt; ///< absent: a file with experts is refused
};

/// "blk.3." + suffix.
std::string blockName(int64_t layer, std::string_view suffix);

/// One file on its way to a description. Failures name the key or tensor and both values.
class GgufReader {
public:
  /// `maxContext` is how many positions will be served, 0 when nobody said.
  explicit GgufReader(const formats::GgufFile& file, uint64_t maxContext = 0) : file_(file), maxContext_(maxContext) {}

  /// Reads the whole model as a plain dense decoder.
  Status describeDecoder(const DecoderTraits& traits);

  ModelDescription& model() { return model_; }
  /// A number of the file, `otherwise` when it has none.
  StatusOr<double> number(std::string_view suffix, double otherwise) const;
  const formats::GgufFile& file() const { return file_; }

  ModelDescription takeModel() { return std::move(model_); }
  Status readArchitecture();
  const std::string& architecture() const { return model_.architecture; }

private:
  std::string key(std::string_view suffix) const { return model_.architecture + "." + std::string(suffix); }
  /// A size within 1 and kMaxModelSize; without `otherwise` the key is required.
  StatusOr<int64_t> size(std::string_view suffix, std::optional<int64_t> otherwise = std::nullopt) const;
  /// A size for each layer, 0 allowed.
  StatusOr<std::vector<int64_t>> perLayer(std::string_view suffix, std::optional<int64_t> otherwise) const;

  Status readSizes();
  Status readHeads(const DecoderTraits& traits);
  Status readMixers(const DecoderTraits& traits);
  StatusOr<int64_t> headSize(std::string_view suffix) const;
  Status readNumbers(const DecoderTraits& traits);
  Status readScales(const DecoderTraits& traits);
  Status readTemperature();
  Status readWindows(const WindowRule& rule);
  StatusOr<std::vector<bool>> windowLayers(const WindowRule& rule) const;
  Status readExpertCounts(const DecoderTraits& traits);
  Status readRouting(const ExpertTraits& traits);
  Status readExperts(int64_t layer);
  Status readExpertPart(int64_t layer, std::string_view part, int64_t rows, int64_t cols);
  Status readSharedExpert(int64_t layer);
  Status readRope(const DecoderTraits& traits);
  Status readRopeScaling(const DecoderTraits& traits, std::vector<double>& frequencies, double base, double& magnitude);
  StatusOr<std::string> factorTensor(const DecoderTraits& traits);
  Status readFrequencyFactors(const std::string& name, std::vector<double>& frequencies) const;
  Status readEnds(const DecoderTraits& traits);
  Status readLayer(int64_t layer, const DecoderTraits& traits);
  Status readDraft(const DecoderTraits& traits);
  Status readMixer(int64_t layer, const DecoderTraits& traits);
  Status readAttention(int64_t layer, const DecoderTraits& traits);
  Status readGatedQueries(int64_t layer);
  Status readShortConv(int64_t layer);
  Status readGatedDelta(int64_t layer);
  Status readLatentSizes();
  Status readLatentAttention(int64_t layer, const DecoderTraits& traits);
  Status readLatentHeads(int64_t layer, std::string_view file, std::string_view canonical, int64_t rows, int64_t cols);
  Status readFeedForward(int64_t layer, const DecoderTraits& traits);
  Status checkVocabulary() const;

  StatusOr<const formats::Tensor*> require(const std::string& name) const;
  Status matrix(const std::string& name, const std::string& canonical, int64_t rows, int64_t cols);
  Status vector(const std::string& name, const std::string& canonical, int64_t size);
  Status optionalVector(const std::string& name, const std::string& canonical, int64_t size);

  const formats::GgufFile& file_;
  uint64_t maxContext_;
  ModelDescription model_;
  int64_t keyLength_ = 0, valueLength_ = 0;
  int64_t taps_ = 0;       ///< of the recurrent mixers' convolution
  int64_t predictors_ = 0; ///< blocks at the end of model_.layers that are no part of the trunk, while it is read
  std::vector<int64_t> feedForward_, expertWidth_;
};

} // namespace cortiq::compiler
