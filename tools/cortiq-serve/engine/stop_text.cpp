#include "tools/cortiq-serve/engine/stop_text.h"

#include <algorithm>

namespace cortiq::serve {

std::string StopText::push(std::string_view piece) {
  if (stopped_)
    return {};
  held_ += piece;
  size_t match = std::string::npos;
  for (const std::string& stop : stops_)
    match = std::min(match, held_.find(stop));
  // An end of what is held that begins a stop may become an earlier match than one that is found already.
  size_t certain = std::min(match, held_.size());
  for (const std::string& stop : stops_) {
    const size_t first = held_.size() - std::min(held_.size(), stop.size() - 1);
    for (size_t start = first; start < certain; ++start)
      if (stop.starts_with(std::string_view(held_).substr(start))) {
        certain = start;
        break;
      }
  }
  if (certain == match)
    stopped_ = match != std::string::npos;
  std::string out = held_.substr(0, certain);
  held_.erase(0, stopped_ ? held_.size() : certain);
  return out;
}

std::string StopText::flush() {
  // A match that had to wait for an earlier one which did not come.
  size_t match = held_.size();
  for (const std::string& stop : stops_)
    match = std::min(match, held_.find(stop));
  stopped_ = stopped_ || match < held_.size();
  std::string out = held_.substr(0, match);
  held_.clear();
  return out;
}

} // namespace cortiq::serve
