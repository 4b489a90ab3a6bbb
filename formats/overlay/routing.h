#pragma once

// Which skill a prompt belongs to (CMF specification 4.5): the one whose subspace reconstructs the prompt's mean
// residual best, unless even that one is far away.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/overlay/catalog.h"

namespace cortiq::formats {

/// Mean over a prompt's positions of the residual stream, by the layer behind which it was read.
using ResidualMeans = std::map<uint32_t, std::vector<float>>;

struct SkillScore {
  uint32_t skill = 0;
  double error = 0;    ///< squared distance from the subspace
  double relative = 0; ///< E: the same by the squared length of the mean
};

struct Routing {
  std::vector<SkillScore> scores; ///< nearest first
  double novelty = 0;             ///< of the nearest: E, or the calibrated measure
  double threshold = 0;           ///< above it the prompt is novel
  std::optional<uint32_t> skill;  ///< absent: the backbone
};

/// The layers whose means the catalog's descriptors need, ascending, each once.
std::vector<uint32_t> routing_layers(const OverlayCatalog& catalog);

/// Scores every skill that has a descriptor; `means` has the layers of routing_layers() in the descriptors' width.
Routing route(const OverlayCatalog& catalog, const ResidualMeans& means);

} // namespace cortiq::formats
