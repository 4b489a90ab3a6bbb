#include "compiler/frontend/cmf/Resonance.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/frontend/cmf/Weights.h"
#include "formats/json.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfFile;
using formats::Json;
using formats::Tensor;

namespace {

std::string expertName(int64_t index, int64_t expert) {
  return layerName(index, "mlp.experts." + std::to_string(expert) + ".");
}

/// Means, bases and biases of experts on their way into the description.
class DescriptorReader {
public:
  DescriptorReader(const CmfFile& file, int64_t index, ModelDescription& model)
      : file_(file), index_(index), model_(model) {}

  Status readStack(int64_t experts) {
    const std::string stem = layerName(index_, "mlp");
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* mean, requireCmfTensor(file_, stem + ".desc.mu"));
    CORTIQ_RETURN_IF_ERROR(addExpertStack(model_, *mean, stem, "desc.mu", experts, model_.hidden, 0, model_.hidden, 0));
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* bias, requireCmfTensor(file_, stem + ".desc.bias"));
    for (int64_t e = 0; e < experts; ++e)
      CORTIQ_RETURN_IF_ERROR(addWeight(model_, expertName(index_, e) + "desc.bias", {bias, {1}, e}, experts));
    const Tensor* basis = file_.find(stem + ".desc.u");
    if (!basis)
      return {};
    const bool three = basis->shape.size() == 3;
    rank_ = three ? static_cast<int64_t>(basis->shape[1]) : 1;
    if (rank_ > model_.hidden)
      return invalid("tensor " + formats::quote(basis->name) + " has more directions than features");
    if (three)
      return addExpertStack(model_, *basis, stem, "desc.u", experts, *rank_, 0, *rank_, model_.hidden);
    for (int64_t e = 0; e < experts; ++e) // one direction an expert
      CORTIQ_RETURN_IF_ERROR(
          addWeight(model_, expertName(index_, e) + "desc.u", {basis, {1, model_.hidden}, e}, experts));
    return {};
  }

  /// Expert `number` of the layer, whose tensors begin with `prefix`.
  Status readOne(int64_t number, const std::string& prefix, bool shell) {
    const std::string own = expertName(index_, number);
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* mean, requireCmfTensor(file_, prefix + "desc.mu"));
    CORTIQ_RETURN_IF_ERROR(addWeight(model_, own + "desc.mu", {mean, {model_.hidden}}));
    CORTIQ_RETURN_IF_ERROR(readNumber(own + "desc.bias", prefix + "desc.bias"));
    if (shell)
      CORTIQ_RETURN_IF_ERROR(readNumber(own + "desc.shell", prefix + "desc.shell"));
    const Tensor* basis = file_.find(prefix + "desc.u");
    const int64_t rank = !basis ? 0 : basis->shape.size() == 2 ? static_cast<int64_t>(basis->shape[0]) : 1;
    if (rank_.value_or(rank) != rank || rank > model_.hidden)
      return invalid("tensor " + formats::quote(prefix + "desc.u") + " gives expert " + std::to_string(number) + " " +
                     std::to_string(rank) + " directions, but the others have " +
                     std::to_string(rank_.value_or(model_.hidden)));
    rank_ = rank;
    return basis ? addWeight(model_, own + "desc.u", {basis, {rank, model_.hidden}}) : Status();
  }

private:
  Status readNumber(const std::string& name, const std::string& tensorName) {
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, requireCmfTensor(file_, tensorName));
    return addWeight(model_, name, {tensor, {1}});
  }

  const CmfFile& file_;
  int64_t index_;
  ModelDescription& model_;
  std::optional<int64_t> rank_; ///< of the experts so far; "ranks of all u must agree"
};

} // namespace

bool hasCmfResonance(const CmfFile& file, int64_t index) {
  return file.arch().moe && file.arch().moe->router_resonance &&
         (file.find(layerName(index, "mlp.desc.mu")) || file.find(expertName(index, 0) + "desc.mu"));
}

// The reader has held the records against their rules already. Numbers go on over records that are not mounted.
std::vector<GrownExpert> grownExperts(const CmfFile& file, int64_t index) {
  std::vector<GrownExpert> grown;
  int64_t next = file.arch().moe ? file.arch().moe->num_experts : 0;
  const auto records = file.header().find("skills");
  if (records == file.header().end() || !records->is_array())
    return grown;
  for (const Json& record : *records) {
    if (record.value("kind", "") != "expert_append")
      continue;
    const auto layers = record["layers"].get<std::vector<int64_t>>();
    if (std::find(layers.begin(), layers.end(), index) == layers.end())
      continue;
    const auto count = record["experts"]["count"].get<int64_t>();
    if (record.value("status", "") == "active")
      for (int64_t i = 0; i < count; ++i)
        grown.push_back({"skill." + record["id"].get<std::string>() + "." + expertName(index, next + i)});
    next += count;
  }
  return grown;
}

void noteCmfGenome(const CmfFile& file, ModelDescription& model) {
  auto note = [&](const std::string& text) { model.warnings.push_back(formats::quote(file.path()) + ": " + text); };
  if (file.header().contains("genome"))
    note("the trunk hash of its genome was not recomputed");
  for (const formats::CmfSkillInfo& skill : file.skills())
    if (skill.kind == "lookup")
      note("the table of texts of skill " + formats::quote(skill.id) + " is not used");
}

Status describeCmfResonance(const CmfFile& file, int64_t index, int64_t own, const std::vector<GrownExpert>& grown,
                            ModelDescription& model) {
  DescriptorReader reader(file, index, model);
  const bool stacked = file.find(layerName(index, "mlp.desc.mu")) != nullptr;
  if (stacked)
    CORTIQ_RETURN_IF_ERROR(reader.readStack(own));
  for (int64_t e = 0; e < own && !stacked; ++e)
    CORTIQ_RETURN_IF_ERROR(reader.readOne(e, expertName(index, e), false));
  for (size_t i = 0; i < grown.size(); ++i)
    CORTIQ_RETURN_IF_ERROR(reader.readOne(own + static_cast<int64_t>(i), grown[i].prefix, true));
  return {};
}

} // namespace cortiq::compiler
