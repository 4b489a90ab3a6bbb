#include "compiler/frontend/cmf/Ropes.h"

#include <algorithm>
#include <cmath>

#include "compiler/frontend/RopeTables.h"

namespace cortiq::compiler {

using formats::CmfArch;
using formats::CmfLayerType;

namespace {

StatusOr<int64_t> rotatedDims(const char* name, int64_t headDim, double factor) {
  if (!std::isfinite(factor) || factor < 0 || factor > 1)
    return invalid(std::string("arch.") + name + " is " + std::to_string(factor) + ", not within 0 and 1");
  // An odd count has no last pair.
  return std::max<int64_t>(2, static_cast<int64_t>(std::floor(headDim * factor))) / 2 * 2;
}

// Of global layers only so many pairs turn, perhaps none; the others are rotated by nothing.
Status stopPairs(const CmfArch& arch, std::vector<double>& frequencies, int64_t headDim) {
  const double factor = arch.global_partial_rotary_factor.value_or(1);
  if (!(factor >= 0 && factor <= 1))
    return invalid("arch.global_partial_rotary_factor is " + std::to_string(factor) + ", not within 0 and 1");
  const auto turning = static_cast<size_t>(std::floor(static_cast<double>(headDim) * factor)) / 2;
  std::fill(frequencies.begin() + std::min(turning, frequencies.size()), frequencies.end(), 0.0);
  return {};
}

bool hasExplicitWindows(const CmfArch& arch) {
  for (CmfLayerType type : arch.layer_types)
    if (type == CmfLayerType::kSlidingAttention)
      return true;
  return false;
}

Status stretch(std::vector<double>& frequencies, double theta, const formats::CmfYarn& yarn) {
  if (!(yarn.factor > 0) || yarn.original_max_position_embeddings == 0 || !(yarn.beta_fast > 0) ||
      !(yarn.beta_slow > 0) || !std::isfinite(yarn.attention_factor))
    return invalid("arch.yarn has a factor, context or beta that is not positive");
  applyYarn(frequencies, theta,
            {.factor = yarn.factor,
             .originalContext = static_cast<double>(yarn.original_max_position_embeddings),
             .betaFast = yarn.beta_fast,
             .betaSlow = yarn.beta_slow},
            YarnClamp::kCmf);
  return {};
}

Status divide(std::vector<double>& frequencies, const std::vector<double>& factors) {
  if (factors.size() != frequencies.size())
    return invalid("arch.rope_freq_factors has " + std::to_string(factors.size()) + " entries for " +
                   std::to_string(frequencies.size()) + " rotated pairs");
  for (double factor : factors)
    if (!std::isfinite(factor) || factor == 0)
      return invalid("arch.rope_freq_factors has an entry that is zero or not finite");
  divideFrequencies(frequencies, factors);
  return {};
}

} // namespace

bool isCmfLocal(const CmfArch& arch, int64_t layer) {
  if (hasExplicitWindows(arch))
    return arch.layer_type(layer) == CmfLayerType::kSlidingAttention;
  if (!arch.sliding_window || !arch.sliding_window_pattern)
    return false;
  return (layer + 1) % std::max<uint32_t>(*arch.sliding_window_pattern, 1) != 0;
}

Status describeCmfRopes(const formats::CmfFile& file, ModelDescription& model) {
  const CmfArch& arch = file.arch();
  if (arch.head_dim < 2)
    return invalid("arch.head_dim is " + std::to_string(arch.head_dim) + ", too small to rotate");
  CORTIQ_ASSIGN_OR_RETURN(const int64_t dims,
                          rotatedDims("partial_rotary_factor", arch.head_dim, arch.partial_rotary_factor));
  std::vector<double> global = plainFrequencies(arch.rope_theta, dims);
  double magnitude = 1;
  if (arch.yarn) {
    CORTIQ_RETURN_IF_ERROR(stretch(global, arch.rope_theta, *arch.yarn));
    magnitude = arch.yarn->attention_factor;
  }
  if (arch.global_head_dim) {
    // Global layers have heads of their own size, of which the first pairs turn (specification 3.3).
    if (arch.yarn)
      return invalid("arch.global_head_dim does not go together with yarn");
    if (*arch.global_head_dim < 2 || *arch.global_head_dim > kMaxModelSize || *arch.global_head_dim % 2 != 0)
      return invalid("arch.global_head_dim is " + std::to_string(*arch.global_head_dim) +
                     ", not an even size that a head can have");
    global = plainFrequencies(arch.rope_theta, *arch.global_head_dim);
    CORTIQ_RETURN_IF_ERROR(stopPairs(arch, global, *arch.global_head_dim));
  } else if (arch.global_partial_rotary_factor && *arch.global_partial_rotary_factor != 1) {
    if (arch.yarn || arch.partial_rotary_factor != 1)
      return invalid("arch.global_partial_rotary_factor does not go together with yarn or partial_rotary_factor");
    CORTIQ_RETURN_IF_ERROR(stopPairs(arch, global, arch.head_dim));
  }
  CORTIQ_ASSIGN_OR_RETURN(const int64_t localDims,
                          rotatedDims("local_partial_rotary_factor", arch.head_dim,
                                      arch.local_partial_rotary_factor.value_or(arch.partial_rotary_factor)));
  const int64_t localWidth = hasExplicitWindows(arch) ? localDims : dims;
  std::vector<double> local;
  if (arch.rope_local_base_freq) {
    if (!(*arch.rope_local_base_freq > 0))
      return invalid("arch.rope_local_base_freq is not positive");
    local = plainFrequencies(*arch.rope_local_base_freq, localWidth);
  }
  if (arch.rope_freq_factors)
    CORTIQ_RETURN_IF_ERROR(divide(global, *arch.rope_freq_factors));
  if (local.empty()) {
    local = global;
    local.resize(std::min<size_t>(localWidth / 2, global.size()));
  }
  CORTIQ_RETURN_IF_ERROR(addRope(model, global, magnitude));
  return addRope(model, local, 1);
}

} // namespace cortiq::compiler
