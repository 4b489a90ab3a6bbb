#include "tools/cortiq-convert/plan.h"

#include <algorithm>
#include <atomic>
#include <fnmatch.h>
#include <map>

#include "formats/encode/row_planes.h"
#include "formats/quote.h"
#include "tools/cortiq-convert/tensor_rows.h"

namespace cortiq::convert {

using formats::Codec;
using formats::codec_info;
using formats::CodecId;
using formats::quote;

namespace {

bool is_plain(const Codec& codec) {
  return codec.id == CodecId::kF32 || codec.id == CodecId::kF16 || codec.id == CodecId::kBF16;
}

std::string encoder_names() {
  std::string names;
  for (const formats::Encoder* encoder : formats::encoder_table())
    names += (names.empty() ? "" : ", ") + std::string(codec_info(encoder->codec).name);
  return names;
}

/// Whether nothing in this matrix stands against the keeper.
bool usable(const formats::Keeper& keeper, const SourceTensor& source, unsigned threads) {
  const uint64_t run = source.columns.run;
  if (!formats::check_encodable(codec_info(keeper.to), source.shape[0], source.shape[1]).ok() ||
      run % source.tensor->codec->block != 0)
    return false;
  if (!keeper.holds)
    return true;
  const TensorRows rows(source);
  std::atomic<bool> all = true;
  formats::for_each_row(0, rows.rows(), threads, [&](uint64_t row) {
    std::vector<uint8_t> scratch;
    if (all && !keeper.holds(rows.bytes(row, scratch), rows.cols()))
      all = false;
  });
  return all;
}

/// The first keeper of the table that holds this matrix; null where there is none.
const formats::Keeper* usable_keeper(const SourceTensor& source, unsigned threads) {
  if (!source.movable())
    return nullptr;
  for (const formats::Keeper* keeper : formats::keeper_table())
    if (keeper->from == source.tensor->codec->id && usable(*keeper, source, threads))
      return keeper;
  return nullptr;
}

class Planner {
public:
  Planner(const QuantOptions& options, unsigned threads, std::vector<std::string>& warnings)
      : options_(options), threads_(threads), warnings_(warnings), matched_(options.tensor_quants.size()) {}

  Status add(const SourceTensor& source) {
    if (source.shape.size() != 2) {
      targets_.push_back(vector_target(source));
      return {};
    }
    const Codec* wanted = named_codec(source.name);
    const bool plain = is_plain(*source.tensor->codec);
    if (!wanted && plain && options_.quant && !source.precise)
      wanted = options_.quant;
    const formats::Keeper* keeper = usable_keeper(source, threads_);
    if (keeper && (!wanted || wanted->id == keeper->to)) {
      targets_.push_back({&source, &codec_info(keeper->to), keeper, nullptr, true});
      return {};
    }
    if (!wanted && source.precise)
      wanted = &codec_info(CodecId::kF32);
    if (!wanted)
      wanted = options_.quant;
    if (!wanted && source.derived) {
      wanted = &codec_info(CodecId::kF32);
      warnings_.push_back("tensor " + quote(source.name) + " becomes f32, for it is put together from decoded values");
    }
    if (wanted)
      return add_encoded(source, *wanted);
    ++homeless_[source.value ? std::string(source.tensor->type_name) + " times a factor"
                             : std::string(source.tensor->type_name)];
    return {};
  }

  StatusOr<std::vector<Target>> finish() {
    for (size_t i = 0; i < matched_.size(); ++i)
      if (!matched_[i])
        return invalid("--tensor-quant " + quote(options_.tensor_quants[i].pattern) +
                       " matches no matrix of this model; cortiq-inspect lists their names");
    if (homeless_.empty())
      return std::move(targets_);
    std::string list;
    for (const auto& [type, count] : homeless_)
      list += (list.empty() ? "" : ", ") + type + " (" + std::to_string(count) + ")";
    return unsupported("CMF has no codec that holds these tensors as they are: " + list +
                       "; say with --quant CODEC what they become, q8_2f, q4tp or another of --help");
  }

private:
  Target vector_target(const SourceTensor& source) const {
    const Codec& from = *source.tensor->codec;
    const Codec& to = is_plain(from) && source.movable() ? from : codec_info(CodecId::kF32);
    return {&source, &to, nullptr, formats::find_encoder(to.id), true};
  }

  const Codec* named_codec(const std::string& name) {
    const Codec* codec = nullptr;
    for (size_t i = 0; i < options_.tensor_quants.size(); ++i)
      if (fnmatch(options_.tensor_quants[i].pattern.c_str(), name.c_str(), 0) == 0) {
        codec = options_.tensor_quants[i].codec;
        matched_[i] = true;
      }
    return codec;
  }

  /// Matrices whose width does not suit the codec become q8_2f, which takes any.
  Status add_encoded(const SourceTensor& source, const Codec& wanted) {
    const Codec* codec = &wanted;
    if (const Status fits = formats::check_encodable(wanted, source.shape[0], source.shape[1]); !fits.ok()) {
      codec = &codec_info(CodecId::kQ82F);
      warnings_.push_back("tensor " + quote(source.name) + " becomes q8_2f instead of " + std::string(wanted.name) +
                          ": " + fits.message());
    }
    const bool lossless =
        codec->id == CodecId::kF32 || (source.movable() && is_plain(*codec) && codec->id == source.tensor->codec->id);
    targets_.push_back({&source, codec, nullptr, formats::find_encoder(codec->id), lossless});
    return {};
  }

  const QuantOptions& options_;
  unsigned threads_;
  std::vector<std::string>& warnings_;
  std::vector<bool> matched_;
  std::vector<Target> targets_;
  std::map<std::string, int> homeless_;
};

} // namespace

StatusOr<const Codec*> parse_quant(const std::string& text) {
  const Codec* codec = formats::find_cli_codec(text);
  if (!codec || !formats::find_encoder(codec->id))
    return invalid("there is no encoder for " + quote(text) + "; there are " + encoder_names());
  return codec;
}

StatusOr<TensorQuant> parse_tensor_quant(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    return invalid("--tensor-quant takes PATTERN=CODEC, not " + quote(text));
  CORTIQ_ASSIGN_OR_RETURN(const Codec* codec, parse_quant(text.substr(equals + 1)));
  return TensorQuant{text.substr(0, equals), codec};
}

StatusOr<std::vector<Target>> plan_targets(const SourceModel& model, const QuantOptions& options, unsigned threads,
                                           std::vector<std::string>& warnings) {
  Planner planner(options, threads, warnings);
  for (const SourceTensor& source : model.tensors)
    CORTIQ_RETURN_IF_ERROR(planner.add(source));
  return planner.finish();
}

std::string quant_type(const std::vector<Target>& targets) {
  std::map<CodecId, uint64_t> weights;
  for (const Target& target : targets)
    if (target.source->shape.size() == 2)
      weights[target.codec->id] += target.source->shape[0] * target.source->shape[1];
  const auto most = std::max_element(weights.begin(), weights.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  switch (most == weights.end() ? CodecId::kF32 : most->first) {
  case CodecId::kF32:
    return "F32";
  case CodecId::kF16:
    return "F16";
  case CodecId::kBF16:
    return "BF16";
  case CodecId::kQ8Row:
    return "Q8_ROW";
  case CodecId::kQ82F:
    return "Q8_2F";
  case CodecId::kQ4Block:
  case CodecId::kQ4Tiled:
  case CodecId::kQ4TP:
  case CodecId::kQ2TP:
  case CodecId::kMXFP4:
    return "Q4_BLOCK";
  default:
    return "VBIT"; // the label of the one-bit and variable codecs
  }
}

} // namespace cortiq::convert
