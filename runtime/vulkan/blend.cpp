#include "runtime/vulkan/blend.h"

#include "formats/layout/layout.h"
#include "runtime/overlay/overlay.h"

namespace cortiq::runtime::vulkan {

StatusOr<std::unique_ptr<BlendWeights>> BlendWeights::make(const VulkanModel& model,
                                                           const formats::OverlaySelection& selection,
                                                           const std::vector<uint32_t>& needed) {
  auto out = std::make_unique<BlendWeights>();
  out->shares_ = selection.shares;
  const std::shared_ptr<Device>& device = out->device_ = model.shared_device();
  CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<Uploader> uploader, Uploader::make(device));
  const auto mixed = [&](uint32_t weight) -> StatusOr<std::vector<uint8_t>> {
    return mix_weight(model.artifact().resolver, weight, selection);
  };
  for (const uint32_t weight : needed) {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, mixed(weight));
    CORTIQ_ASSIGN_OR_RETURN(Buffer buffer, Buffer::make(device, bytes.size(), Place::kDevice, "weights of a blend"));
    CORTIQ_RETURN_IF_ERROR(uploader->write(buffer, 0, bytes));
    out->places_[weight] = {buffer.handle(), 0, bytes.size()};
    out->buffers_.push_back(std::move(buffer));
  }
  CORTIQ_ASSIGN_OR_RETURN(out->vectors_,
                          Buffer::make(device, model.vectors().bytes(), Place::kDevice, "vectors of a blend"));
  CORTIQ_RETURN_IF_ERROR(model.write_vectors(*uploader, out->vectors_));
  for (const artifact::GpuVector* vector : *model.program().vectors()) {
    if (vector->words() || !model.artifact().resolver.weights[vector->weight()].mixed)
      continue;
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, mixed(vector->weight()));
    CORTIQ_RETURN_IF_ERROR(uploader->write(out->vectors_, vector->start() * 4,
                                           std::span(bytes).first(bytes.size() - formats::kLayoutTailPadding)));
  }
  CORTIQ_RETURN_IF_ERROR(uploader->finish());
  return out;
}

Status BlendWeights::follow(const Bank& bank) {
  if (followed_ == bank.moves())
    return {};
  if (!uploader_) {
    CORTIQ_ASSIGN_OR_RETURN(uploader_, Uploader::make(device_));
  }
  CORTIQ_RETURN_IF_ERROR(bank.put_tables(*uploader_, vectors_));
  followed_ = bank.moves();
  return uploader_->finish();
}

const WeightPlace* BlendWeights::find(uint32_t weight) const {
  const auto found = places_.find(weight);
  return found == places_.end() ? nullptr : &found->second;
}

uint64_t BlendWeights::device_bytes() const {
  uint64_t bytes = vectors_.bytes();
  for (const Buffer& buffer : buffers_)
    bytes += buffer.bytes();
  return bytes;
}

} // namespace cortiq::runtime::vulkan
