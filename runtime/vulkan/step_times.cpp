#include "runtime/vulkan/step_times.h"

#include <algorithm>

namespace cortiq::runtime::vulkan {

StatusOr<std::unique_ptr<Timestamps>> Timestamps::make(std::shared_ptr<Device> device, uint32_t most) {
  std::unique_ptr<Timestamps> out(new Timestamps(device));
  const uint32_t bits = device->timestamp_bits();
  if (bits == 0)
    return unsupported(device->info().name + " has no clock for the steps of a queue");
  out->mask_ = bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  out->period_ = static_cast<double>(device->limits().timestampPeriod) * 1e-9;
  out->most_ = most;
  VkQueryPoolCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = most};
  CORTIQ_VK(device->call().vkCreateQueryPool(device->handle(), &info, nullptr, &out->pool_), "preparing its clock");
  return out;
}

Timestamps::~Timestamps() {
  if (pool_ && !device_->given_up())
    device_->call().vkDestroyQueryPool(device_->handle(), pool_, nullptr);
}

void Timestamps::begin(VkCommandBuffer commands) const {
  device_->call().vkCmdResetQueryPool(commands, pool_, 0, most_);
}

void Timestamps::mark(VkCommandBuffer commands, uint32_t row) {
  if (rows_.size() == most_)
    return;
  device_->call().vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_,
                                      static_cast<uint32_t>(rows_.size()));
  rows_.push_back(row);
}

bool Timestamps::fetch(std::vector<uint64_t>& times) const {
  return device_->call().vkGetQueryPoolResults(device_->handle(), pool_, 0, static_cast<uint32_t>(times.size()),
                                               times.size() * sizeof(uint64_t), times.data(), sizeof(uint64_t),
                                               VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT) == VK_SUCCESS;
}

uint32_t StepTimes::row(const std::string& name, uint64_t rows, uint64_t cols, uint64_t bytes) {
  const auto [at, inserted] = numbers_.try_emplace(name + " " + std::to_string(rows) + "x" + std::to_string(cols),
                                                   static_cast<uint32_t>(rows_.size()));
  if (inserted) {
    rows_.push_back({name, rows, cols});
    bytes_.push_back(bytes);
  }
  return at->second;
}

void StepTimes::add(const Timestamps& times) {
  ++steps_;
  times.read([&](uint32_t number, double seconds) {
    Profile::Row& row = rows_[number];
    ++row.calls;
    row.seconds += seconds;
    row.busy_seconds += seconds;
    row.bytes += static_cast<double>(bytes_[number]);
  });
}

void StepTimes::add_to(Profile& profile) const {
  for (const Profile::Row& row : rows_) {
    if (row.calls == 0)
      continue;
    profile.rows.push_back(row);
    profile.step += row.seconds;
    profile.work += row.seconds;
    profile.bytes += row.bytes;
  }
  if (steps_ != 0) // the CPU counts each of its parts of them
    profile.steps = steps_;
  std::ranges::sort(profile.rows, [](const auto& a, const auto& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
  });
}

void StepTimes::reset() {
  steps_ = 0;
  for (Profile::Row& row : rows_) {
    row.calls = 0;
    row.seconds = row.busy_seconds = row.bytes = 0;
  }
}

} // namespace cortiq::runtime::vulkan
