#pragma once

// Zeroed memory that costs nothing until it is touched.

#include <cstdint>
#include <utility>

#include "runtime/memory/placement.h"

namespace cortiq::runtime {

/// An anonymous mapping without reserved swap. Empty when `bytes` is 0 or the system refused.
class ReservedMemory {
public:
  ReservedMemory() = default;
  explicit ReservedMemory(uint64_t bytes, const Placement& placement = {.numa = false});
  ReservedMemory(ReservedMemory&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
        mapped_(std::exchange(other.mapped_, nullptr)), mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}
  ReservedMemory& operator=(ReservedMemory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    return *this;
  }
  ~ReservedMemory();

  uint8_t* data() const { return base_; }
  uint64_t bytes() const { return bytes_; }

private:
  uint8_t* base_ = nullptr;
  uint64_t bytes_ = 0;
  uint8_t* mapped_ = nullptr; ///< large pages begin at multiples of their size, mappings anywhere
  uint64_t mapped_bytes_ = 0;
};

} // namespace cortiq::runtime
