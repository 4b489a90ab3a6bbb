#pragma once

// Sizes of layers, whatever the source: what tensors of CMF have to have.

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/json.h"

namespace cortiq::convert {

inline constexpr uint64_t kMostSize = uint64_t{1} << 31; ///< what a CMF header holds

/// What mixes tokens in one layer.
enum class LayerKind : uint8_t { kAttention, kWindow, kShortConv, kGatedDelta };

/// arch.layer_types.
formats::Json layer_type_names(const std::vector<LayerKind>& kinds);

/// Latent attention; 0 for what a model has not.
struct LatentSizes {
  uint64_t query_rank = 0, rank = 0, rope = 0, nope = 0, value = 0;
};

/// arch.mla.
formats::Json latent_fields(const LatentSizes& sizes);

/// Gated delta networks.
struct DeltaSizes {
  uint64_t taps = 0, key_heads = 0, value_heads = 0, key_size = 0, value_size = 0;
  uint64_t keys() const { return key_heads * key_size; }
  uint64_t values() const { return value_heads * value_size; }
  uint64_t channels() const { return 2 * keys() + values(); }
  uint64_t turns() const { return value_heads / key_heads; }
};

/// Adds linear_core and the fields beside it to `arch`.
void add_delta_fields(const DeltaSizes& sizes, formats::Json& arch);

struct ExpertSizes {
  uint64_t count = 0, used = 0, width = 0, shared_width = 0;
};

/// What chooses and weighs experts.
struct RouterRules {
  bool normalized = false, sigmoid = false;
  double scale = 1;
};

/// arch.moe.
formats::Json expert_fields(const ExpertSizes& sizes, const RouterRules& rules);

} // namespace cortiq::convert
