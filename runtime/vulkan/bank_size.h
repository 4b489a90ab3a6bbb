#pragma once

// How many experts a bank on a device holds, and in how many segments.

#include <cstdint>
#include <vector>

#include "formats/status.h"

namespace cortiq::runtime::vulkan {

/// What a bank is made from. Bytes.
struct BankRequest {
  uint64_t experts = 0;        ///< of all its layers: more slots are of no use
  uint64_t slots = 0;          ///< asked for; 0 = one an expert
  uint64_t memory = 0;         ///< that the model may take on the device
  uint64_t others = 0;         ///< of it, what is there beside the experts
  uint64_t outer_bytes = 0;    ///< of a slot: gate and up
  uint64_t down_bytes = 0;     ///< of a slot: down
  uint64_t largest = 0;        ///< buffer that can be bound
  uint32_t segments = 0;       ///< 8 or 16; 0 = 8, or 16 where 8 cannot hold what is asked for
  uint32_t most_segments = 16; ///< that the device binds
};

struct BankSize {
  uint32_t segments = 0; ///< that its shaders are made for: 8 or 16
  uint64_t segment_slots = 0, used_segments = 0;
  uint64_t slots() const { return segment_slots * used_segments; }
};

/// What is kept free for work space: a tenth of the memory, 2 to 4 GiB; half of it where there is less than 4.
uint64_t bank_work_space(uint64_t memory);

/// The sizes to try one after the other: the second one where memory for the first is refused. Fails when not one slot
/// fits.
StatusOr<std::vector<BankSize>> bank_sizes(const BankRequest& request);

} // namespace cortiq::runtime::vulkan
