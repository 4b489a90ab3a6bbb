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

/// What distinguishes one plain dense decoder from another.
struct DecoderTraits {
  RopePairing pairing = RopePairing::kHalfSplit;
  bool rotatesWholeHead = false;                      ///< rope.dimension_count must equal the key length
  bool headNorms = false;                             ///< attn_q_norm and attn_k_norm, one value a feature of a head
  std::optional<ExpertTraits> experts = std::nullopt; ///< absent: a file with experts is refused
};

/// "blk.3." + suffix.
std::string blockName(int64_t layer, std::string_view suffix);

/// One file on its way to a description. Failures name the key or tensor and both values.
class GgufReader {
public:
  explicit GgufReader(const formats::GgufFile& file) : file_(file) {}

  /// Reads the whole model as a plain dense decoder.
  Status describeDecoder(const DecoderTraits& traits);

  ModelDescription takeModel() { return std::move(model_); }
  Status readArchitecture();
  const std::string& architecture() const { return model_.architecture; }

private:
  std::string key(std::string_view suffix) const { return model_.architecture + "." + std::string(suffix); }
  /// A size within 1 and kMaxModelSize; without `otherwise` the key is required.
  StatusOr<int64_t> size(std::string_view suffix, std::optional<int64_t> otherwise = std::nullopt) const;
  /// A size for each layer, 0 allowed.
  StatusOr<std::vector<int64_t>> perLayer(std::string_view suffix, std::optional<int64_t> otherwise) const;
  StatusOr<double> number(std::string_view suffix, double otherwise) const;

  Status readSizes();
  Status readHeads();
  Status readNumbers();
  Status readExpertCounts(const DecoderTraits& traits);
  Status readRouting(const ExpertTraits& traits);
  Status readExperts(int64_t layer);
  Status readExpertPart(int64_t layer, std::string_view part, int64_t rows, int64_t cols);
  Status readSharedExpert(int64_t layer);
  Status readRope(const DecoderTraits& traits);
  Status readRopeScaling(std::vector<double>& frequencies, double base, double& magnitude);
  Status readFrequencyFactors(std::vector<double>& frequencies);
  Status readEnds();
  Status readLayer(int64_t layer, const DecoderTraits& traits);
  Status readAttention(int64_t layer, const DecoderTraits& traits);
  Status readFeedForward(int64_t layer);
  Status checkVocabulary() const;

  StatusOr<const formats::Tensor*> require(const std::string& name) const;
  Status matrix(const std::string& name, const std::string& canonical, int64_t rows, int64_t cols);
  Status vector(const std::string& name, const std::string& canonical, int64_t size);
  Status optionalVector(const std::string& name, const std::string& canonical, int64_t size);

  const formats::GgufFile& file_;
  ModelDescription model_;
  int64_t keyLength_ = 0, valueLength_ = 0;
  std::vector<int64_t> feedForward_, expertWidth_;
};

} // namespace cortiq::compiler
