#pragma once

// Failures of a device on demand, for tests: no driver is lost at the third submission when one asks it to.
//
// CORTIQ_GPU_FAULTS holds items POINT=VALUE, comma between them:
//   submit=N, wait=N    the N-th submission, or wait, of the process finds the device lost; it stays lost
//   hang=N              the N-th wait ends without an answer
//   allocate=N          the N-th allocation of device memory fails
//   teardown=1          the device is lost when its sessions end
//   pipeline=N, or TEXT the driver refuses the N-th module that it is given, or those with TEXT in their names
//   range=B, matrix=B   bytes that can be bound, in general and of weights
//   shared=B, invocations=N   shared memory and size of a workgroup
//   features=none       no optional feature
//   robust=0            no checks of bounds of buffers, to measure what they cost
//   wide=0              no products on cooperative matrices, to hold what they compute against what others do
//   half=0              no prompts on matrices of f16, as on a device without
//   half=1              a device that says it has them, and has none: their modules are refused
//   remake=1            pipelines are made twice, the second time from what the driver kept of the first, to measure
//                       whether those are faster than new ones
//   free=B              bytes of memory that are free, of every device

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cortiq::runtime::vulkan {

class Faults {
public:
  /// What the environment asks for; read once.
  static Faults& get();

  /// Counts an event and says whether it is the one that fails.
  bool strikes(std::string_view point);
  bool refuses_module(std::string_view name);
  bool has(std::string_view point) const { return !text(point).empty(); }
  std::optional<uint64_t> number(std::string_view point) const;

private:
  explicit Faults(std::string items) : items_(std::move(items)) {}
  std::string_view text(std::string_view point) const;

  static constexpr std::string_view kCounted[] = {"submit", "wait", "hang", "allocate", "teardown", "pipeline"};
  std::string items_;
  std::atomic<uint64_t> counts_[std::size(kCounted)] = {};
};

} // namespace cortiq::runtime::vulkan
