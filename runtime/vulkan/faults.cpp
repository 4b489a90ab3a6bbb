#include "runtime/vulkan/faults.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace cortiq::runtime::vulkan {

Faults& Faults::get() {
  static Faults faults([] {
    const char* asked = std::getenv("CORTIQ_GPU_FAULTS");
    return std::string(asked ? asked : "");
  }());
  return faults;
}

std::string_view Faults::text(std::string_view point) const {
  for (std::string_view rest = items_; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (item.starts_with(point) && item.size() > point.size() && item[point.size()] == '=')
      return item.substr(point.size() + 1);
  }
  return {};
}

std::optional<uint64_t> Faults::number(std::string_view point) const {
  const std::string_view digits = text(point);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return digits.empty() || error != std::errc() || end != digits.data() + digits.size() ? std::nullopt
                                                                                        : std::optional(value);
}

bool Faults::strikes(std::string_view point) {
  if (items_.empty())
    return false;
  const auto at = std::ranges::find(kCounted, point) - std::begin(kCounted);
  return counts_[at].fetch_add(1, std::memory_order_relaxed) + 1 == number(point);
}

bool Faults::refuses_module(std::string_view name) {
  const bool counted = strikes("pipeline");
  return counted || (has("pipeline") && !number("pipeline") && name.find(text("pipeline")) != name.npos);
}

} // namespace cortiq::runtime::vulkan
