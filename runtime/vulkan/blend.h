#pragma once

// The weights of a blend of skills on a device: each session's own, mixed when the blend comes into force.

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "formats/overlay/selection.h"
#include "runtime/vulkan/bank.h"
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
  /// Brings the tables of slots among its vectors up to date; with the bank's lock().
  Status follow(const Bank& bank);

private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<Uploader> uploader_; ///< of tables, made when there are some
  std::optional<uint64_t> followed_;   ///< the bank's number of moves when the tables were put there
  std::vector<formats::OverlayShare> shares_;
  std::vector<Buffer> buffers_;
  Buffer vectors_;
  std::map<uint32_t, WeightPlace> places_;
};

} // namespace cortiq::runtime::vulkan
