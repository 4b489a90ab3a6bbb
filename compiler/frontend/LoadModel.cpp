#include "compiler/frontend/LoadModel.h"

#include <algorithm>
#include <set>

#include "compiler/frontend/CmfFrontend.h"
#include "compiler/frontend/DecoderBuilder.h"
#include "compiler/frontend/GgufFrontend.h"
#include "formats/checked_math.h"
#include "formats/codec/q4tp_ladder.h"
#include "formats/file_kind.h"
#include "formats/quote.h"

namespace cortiq::compiler {

namespace {

// Payloads inside the parts of an opened container.
template <class File>
class FileWeights : public cmf::WeightSource {
public:
  explicit FileWeights(const File& file) : file_(file) {}

  StatusOr<std::span<const uint8_t>> payload(cmf::WeightOp op) override {
    const cmf::SourceAttr source = op.getSourceAttr();
    if (!source)
      return invalid("weight " + formats::quote(op.getName().str()) + " has no source in " + file_.path());
    if (source.getFile() >= file_.file_count())
      return invalid("weight " + formats::quote(op.getName().str()) + " lies in part " +
                     std::to_string(source.getFile()) + " of " + file_.path() + ", which has " +
                     std::to_string(file_.file_count()));
    const std::span<const uint8_t> bytes = file_.file_bytes(source.getFile());
    if (!formats::range_fits(source.getOffset(), source.getBytes(), bytes.size()))
      return invalid("weight " + formats::quote(op.getName().str()) + " ends past the end of " +
                     file_.file_path(source.getFile()));
    return bytes.subspan(source.getOffset(), source.getBytes());
  }

private:
  const File& file_;
};

// Tensors that are no part of the trunk, or repeat what another one says.
bool isKnownExtra(std::string_view name) {
  return name.starts_with("model.mtp.") || name.ends_with("mlp.down_proj.t.weight") ||
         name.ends_with("attn_rot_embd.weight") || name.ends_with(".layer_scalar") || name == "rope_freqs.weight" ||
         name == "rope_factors_long.weight" || name == "rope_factors_short.weight" || name.find(".nextn.") != name.npos;
}

void warnOfUnread(ModelDescription& model, const std::vector<formats::Tensor>& tensors, const std::string& path) {
  std::set<const formats::Tensor*> read;
  for (const auto& [name, weight] : model.weights)
    read.insert(weight.tensor);
  for (const auto& [name, alternatives] : model.alternatives)
    for (const SkillWeight& alternative : alternatives)
      read.insert(alternative.weight.tensor);
  size_t unread = 0;
  const formats::Tensor* first = nullptr;
  for (const formats::Tensor& tensor : tensors)
    if (!read.contains(&tensor) && !isKnownExtra(tensor.name)) {
      first = first ? first : &tensor;
      ++unread;
    }
  if (first)
    model.warnings.push_back(
        formats::quote(path) + ": " + std::to_string(unread) +
        (unread == 1 ? " tensor is not part of the model: " : " tensors are not part of the model, the first is ") +
        formats::quote(first->name));
}

// That the other ladder is asked for where nothing has one.
void warnOfUnusedLadder(ModelDescription& model, const std::vector<formats::Tensor>& tensors, const std::string& path) {
  const auto hasLadder = [](const formats::Tensor& tensor) {
    return tensor.codec && tensor.codec->id == formats::CodecId::kQ4TP;
  };
  if (std::ranges::none_of(tensors, hasLadder))
    model.warnings.push_back(formats::quote(path) + ": no tensor is q4tp, --q4tp-ladder changes nothing");
}

template <class File, class Describe>
StatusOr<LoadedModel> load(const std::string& path, mlir::MLIRContext& context,
                           std::unique_ptr<File> LoadedModel::* member, const LoadOptions& options, Describe describe) {
  CORTIQ_ASSIGN_OR_RETURN(File opened, File::open(path));
  LoadedModel model;
  model.*member = std::make_unique<File>(std::move(opened));
  const File& file = *(model.*member);
  CORTIQ_ASSIGN_OR_RETURN(ModelDescription description, describe(file));
  warnOfUnread(description, file.tensors(), path);
  if (options.vectorLadder)
    warnOfUnusedLadder(description, file.tensors(), path);
  model.module = buildModule(context, description);
  model.weights = std::make_unique<FileWeights<File>>(file);
  model.warnings = std::move(description.warnings);
  return model;
}

} // namespace

StatusOr<LoadedModel> loadModel(const std::string& path, mlir::MLIRContext& context, const LoadOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(const formats::FileKind kind, formats::detect_file_kind(path));
  formats::read_q4tp_as(options.vectorLadder ? formats::Q4TPReading::kVector : formats::Q4TPReading::kExact);
  switch (kind) {
  case formats::FileKind::kCmf:
    return load<formats::CmfFile>(path, context, &LoadedModel::cmf, options, describeCmf);
  case formats::FileKind::kGguf:
    return load<formats::GgufFile>(path, context, &LoadedModel::gguf, options, [&](const formats::GgufFile& file) {
      return describeGguf(file, options.maxContext);
    });
  case formats::FileKind::kArtifact:
    return invalid(formats::quote(path) + ": this is a compiled artifact (or another ELF file), not a model");
  }
  return internal_error(formats::quote(path) + ": a kind of file without a front end");
}

} // namespace cortiq::compiler
