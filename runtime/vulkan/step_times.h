#pragma once

// What a device's own clock says of the steps of a session: a timestamp behind each.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/session/profile.h"
#include "runtime/vulkan/device.h"

namespace cortiq::runtime::vulkan {

/// The timestamps of one recording.
class Timestamps {
public:
  /// Room for `most` of them; fails where the queue has no clock.
  static StatusOr<std::unique_ptr<Timestamps>> make(std::shared_ptr<Device> device, uint32_t most);
  ~Timestamps();
  Timestamps(const Timestamps&) = delete;
  Timestamps& operator=(const Timestamps&) = delete;

  /// Before the first of a recording.
  void begin(VkCommandBuffer commands) const;
  /// The time at which all that stands before it is done; `row` took the time since the latest one, UINT32_MAX =
  /// nobody.
  void mark(VkCommandBuffer commands, uint32_t row);

  /// Calls `use` with (row, seconds) of each span; what was recorded has to be done.
  template <class Use>
  void read(Use use) const {
    std::vector<uint64_t> times(rows_.size());
    if (rows_.empty() || !fetch(times))
      return;
    for (size_t i = 1; i < rows_.size(); ++i)
      if (rows_[i] != UINT32_MAX)
        use(rows_[i], static_cast<double>((times[i] - times[i - 1]) & mask_) * period_);
  }

private:
  explicit Timestamps(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  bool fetch(std::vector<uint64_t>& times) const;

  std::shared_ptr<Device> device_;
  VkQueryPool pool_ = VK_NULL_HANDLE;
  uint32_t most_ = 0;
  uint64_t mask_ = 0;
  double period_ = 0; ///< seconds a tick
  std::vector<uint32_t> rows_;
};

/// Sums by what a step is.
class StepTimes {
public:
  /// The row of steps that are called `name`, on weights of so many rows, columns and bytes.
  uint32_t row(const std::string& name, uint64_t rows, uint64_t cols, uint64_t bytes);
  void add(const Timestamps& times);
  void add_to(Profile& profile) const;
  void reset();

private:
  std::map<std::string, uint32_t> numbers_;
  std::vector<Profile::Row> rows_;
  std::vector<uint64_t> bytes_; ///< a call
  uint64_t steps_ = 0;
};

} // namespace cortiq::runtime::vulkan
