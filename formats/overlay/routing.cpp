#include "formats/overlay/routing.h"

#include <algorithm>
#include <cmath>

namespace cortiq::formats {
namespace {

constexpr double kFixedThreshold = 0.30; // of E in a model without calibration
constexpr double kLeast = 1e-12;

double squared(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x)
    sum += v * v;
  return sum;
}

SkillScore score(uint32_t skill, const SkillDescriptor& d, const std::vector<float>& mean) {
  std::vector<double> x(mean.begin(), mean.end());
  if (d.unit) {
    const double length = std::max(std::sqrt(squared(x)), kLeast);
    for (double& v : x)
      v /= length;
  }
  const double size = std::max(squared(x), kLeast);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] -= d.mean[i];
  double error = squared(x);
  for (uint32_t k = 0; k < d.rank; ++k) {
    double dot = 0;
    for (size_t i = 0; i < x.size(); ++i)
      dot += d.basis[k * x.size() + i] * x[i];
    error -= dot * dot;
  }
  error = std::max(error, 0.0);
  return {skill, error, error / size};
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// How new the prompt is, from the nearest skill's error, its lead and the confidence of the choice.
double calibrated_novelty(const OverlayCatalog& catalog, const std::vector<SkillScore>& scores) {
  const SkillDescriptor& best = *catalog.skills[scores[0].skill].descriptor;
  const double temperature = std::max(catalog.calibration->temperature, 1e-3);
  double sum = 0;
  for (const SkillScore& s : scores)
    sum += std::exp((scores[0].error - s.error) / temperature);
  const double confidence = 1 / sum;
  double margin = 1 / (1 + scores[0].error);
  if (scores.size() > 1)
    margin -= 1 / (1 + scores[1].error);
  const double z = (scores[0].error - best.err_mean) / std::max<double>(best.err_std, 1e-4);
  return 0.5 * sigmoid(z) + 0.25 / (1 + 8 * margin) + 0.25 * (1 - confidence);
}

} // namespace

std::vector<uint32_t> routing_layers(const OverlayCatalog& catalog) {
  std::vector<uint32_t> layers;
  for (const OverlaySkill& skill : catalog.skills)
    if (skill.descriptor)
      layers.push_back(skill.descriptor->layer);
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

Routing route(const OverlayCatalog& catalog, const ResidualMeans& means) {
  Routing out;
  for (uint32_t i = 0; i < catalog.skills.size(); ++i)
    if (const auto& descriptor = catalog.skills[i].descriptor)
      out.scores.push_back(score(i, *descriptor, means.at(descriptor->layer)));
  std::sort(out.scores.begin(), out.scores.end(), [](const SkillScore& a, const SkillScore& b) {
    return a.error != b.error ? a.error < b.error : a.skill < b.skill;
  });
  if (out.scores.empty())
    return out;
  out.novelty = catalog.calibration ? calibrated_novelty(catalog, out.scores) : out.scores[0].relative;
  out.threshold = catalog.calibration ? catalog.calibration->theta : kFixedThreshold;
  if (!(out.novelty > out.threshold))
    out.skill = out.scores[0].skill;
  return out;
}

} // namespace cortiq::formats
