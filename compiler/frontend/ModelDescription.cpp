#include "compiler/frontend/ModelDescription.h"

#include <cmath>

#include "formats/quote.h"

namespace cortiq::compiler {

std::string layerName(int64_t layer, std::string_view suffix) {
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
  // Some writers pad a shape with ones on the outside.
  std::vector<uint64_t> found = tensor.shape;
  while (found.size() > expected.size() && found.front() == 1)
    found.erase(found.begin());
  if (found != expected)
    return invalid("tensor " + formats::quote(tensor.name) + " has shape " + formats::shape_text(tensor.shape) +
                   ", but the model's sizes ask for " + formats::shape_text(expected));
  if (StatusOr<const formats::Codec*> codec = formats::weight_codec(tensor); !codec.ok())
    return codec.status();
  model.weights[name] = std::move(weight);
  return {};
}

} // namespace cortiq::compiler
