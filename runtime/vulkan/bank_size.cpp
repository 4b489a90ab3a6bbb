#include "runtime/vulkan/bank_size.h"

#include <algorithm>
#include <string>

#include "formats/artifact/shader_abi.h"
#include "formats/checked_math.h"

namespace cortiq::runtime::vulkan {
namespace {

using namespace formats;

constexpr uint64_t kGibi = uint64_t{1} << 30;

std::string mebibytes(uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

/// `slots` in at most so many segments, whole ones: of the two ways to share them out the one that holds more. Where
/// all experts are meant, the last segment has places to spare, if these fit too.
BankSize cut(uint32_t segments, uint64_t slots, uint64_t most_a_segment, bool all, uint64_t fit) {
  const auto shared = [&](uint64_t each) {
    each = std::clamp<uint64_t>(each, 1, most_a_segment);
    return BankSize{segments, each, std::min<uint64_t>(segments, slots / each)};
  };
  BankSize more = shared(ceil_div(slots, uint64_t{segments}));
  const BankSize less = shared(slots / segments);
  const uint64_t whole = ceil_div(slots, more.segment_slots);
  if (all && whole <= segments && whole * more.segment_slots <= fit)
    more.used_segments = whole;
  return more.slots() >= less.slots() ? more : less;
}

} // namespace

uint64_t bank_work_space(uint64_t memory) {
  return std::min(std::clamp(memory / 10, 2 * kGibi, 4 * kGibi), memory / 2);
}

StatusOr<std::vector<BankSize>> bank_sizes(const BankRequest& request) {
  const uint64_t each = request.outer_bytes + request.down_bytes,
                 most_a_segment = request.largest / std::max(request.outer_bytes, request.down_bytes);
  if (most_a_segment == 0)
    return unsupported("an expert's matrices have " +
                       std::to_string(std::max(request.outer_bytes, request.down_bytes)) +
                       " bytes, the device binds at most " + std::to_string(request.largest));
  const uint64_t taken = bank_work_space(request.memory) + request.others;
  const uint64_t fit = request.memory > taken ? (request.memory - taken) / each : 0;
  if (fit == 0)
    return unsupported("the GPU's memory has no place for experts: of " + mebibytes(request.memory) + ", " +
                       mebibytes(bank_work_space(request.memory)) + " are kept for work space, and " +
                       mebibytes(request.others) + " go to other weights");
  const uint64_t wanted = std::min({request.slots != 0 ? request.slots : request.experts, request.experts, fit});
  if (request.segments > request.most_segments || request.most_segments < kBankSegments)
    return unsupported("the device does not bind " + std::to_string(std::max(request.segments, kBankSegments)) +
                       " segments of experts");
  const bool all = wanted == request.experts;
  std::vector<BankSize> out;
  const bool more =
      request.segments == 0 && request.most_segments >= kBankMostSegments && wanted > kBankSegments * most_a_segment;
  if (more || request.segments == kBankMostSegments)
    out.push_back(cut(kBankMostSegments, wanted, most_a_segment, all, fit));
  if (request.segments != kBankMostSegments)
    out.push_back(cut(kBankSegments, wanted, most_a_segment, all, fit));
  return out;
}

} // namespace cortiq::runtime::vulkan
