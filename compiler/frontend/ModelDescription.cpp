#include "compiler/frontend/ModelDescription.h"

#include <cmath>

#include "formats/quote.h"

namespace cortiq::compiler {

std::string layerName(int64_t layer, std::string_view suffix) {
  if (layer == kDraftBlock)
    return "model.mtp.layers.0." + std::string(suffix);
  return "model.layers." + std::to_string(layer) + "." + std::string(suffix);
}

Status addRope(ModelDescription& model, std::span<const double> frequencies, double magnitude) {
  RopeTable table{std::vector<float>(frequencies.begin(), frequencies.end()), static_cast<float>(magnitude)};
  for (float frequency : table.inverseFrequencies)
    if (!std::isfinite(frequency))
      return invalid("the rotary base, scaling and factors give a frequency that is not finite");
  if (!std::isfinite(table.magnitude))
    return invalid("the rotary scaling gives a magnitude that is not finite");
  model.ropes.push_back(std::move(table));
  return {};
}

Status addWeight(ModelDescription& model, const std::string& name, WeightRef weight, std::optional<int64_t> fileRows) {
  const formats::Tensor& tensor = *weight.tensor;
  std::vector<uint64_t> expected(weight.shape.begin(), weight.shape.end());
  if (fileRows)
    expected[0] = static_cast<uint64_t>(*fileRows);
  // Some writers put dimensions of 1 around, or between, the others.
  auto withoutOnes = [](std::vector<uint64_t> shape) {
    std::erase(shape, uint64_t{1});
    return shape;
  };
  if (withoutOnes(tensor.shape) != withoutOnes(expected))
    return invalid("tensor " + formats::quote(tensor.name) + " has shape " + formats::shape_text(tensor.shape) +
                   ", but the model's sizes ask for " + formats::shape_text(expected));
  if (StatusOr<const formats::Codec*> codec = formats::weight_codec(tensor); !codec.ok())
    return codec.status();
  model.weights[name] = std::move(weight);
  return {};
}

Status addExpertStack(ModelDescription& model, const formats::Tensor& tensor, const std::string& stem,
                      std::string_view part, int64_t experts, int64_t each, int64_t first, int64_t rows, int64_t cols) {
  std::vector<uint64_t> expected{static_cast<uint64_t>(experts), static_cast<uint64_t>(each)};
  if (cols != 0)
    expected.push_back(static_cast<uint64_t>(cols));
  if (tensor.shape != expected)
    return invalid("tensor " + formats::quote(tensor.name) + " has shape " + formats::shape_text(tensor.shape) +
                   ", but the model's sizes ask for " + formats::shape_text(expected));
  if (StatusOr<const formats::Codec*> codec = formats::weight_codec(tensor); !codec.ok())
    return codec.status();
  for (int64_t e = 0; e < experts; ++e)
    model.weights[stem + ".experts." + std::to_string(e) + "." + std::string(part)] = {
        &tensor, cols != 0 ? std::vector<int64_t>{rows, cols} : std::vector<int64_t>{rows}, e * each + first};
  return {};
}

} // namespace cortiq::compiler
