#pragma once

// The weights of a blend of skills on a device: each session's own, mixed when the blend comes into force.

#include <map>
#include <memory>
#include <vector>

#include "formats/overlay/selection.h"
#include "runtime/vulkan/model.h"

namespace cortiq::runtime::vulkan {

class BlendWeights {
public:
  /// Mixes all weights in `needed`, and the vectors of the model's program.
  static StatusOr<std::unique_ptr<BlendWeights>>
  make(const VulkanModel& model, const formats::OverlaySelection& selection, const std::vector<uint32_t>& needed);

  const WeightPlace* find(uint32_t weight) const;
  /// All vectors of the model, those that are mixed among them.
  const Buffer& vectors() const { return vectors_; }
  const std::vector<formats::OverlayShare>& shares() const { return shares_; }
  uint64_t device_bytes() const;

private:
  std::vector<formats::OverlayShare> shares_;
  std::vector<Buffer> buffers_;
  Buffer vectors_;
  std::map<uint32_t, WeightPlace> places_;
};

} // namespace cortiq::runtime::vulkan
