#pragma once

// Text that ends where one of several stop strings begins, handed out while it arrives.

#include <string>
#include <string_view>
#include <vector>

namespace cortiq::serve {

/// Takes text in pieces and gives out what cannot belong to a stop string any more. All pieces together are the text up
/// to the earliest match, or the whole of it, wherever the pieces were cut.
class StopText {
public:
  /// `stops` must not be empty strings.
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// What became certain with `piece`. Once stopped() nothing more comes.
  std::string push(std::string_view piece);
  /// At the end of the text: what was held back.
  std::string flush();
  bool stopped() const { return stopped_; }

private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

} // namespace cortiq::serve
