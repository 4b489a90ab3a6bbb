#pragma once

// An answer divided into its text and its calls, while it arrives.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cortiq-serve/openai/tool_calls/format.h"

namespace cortiq::serve {

class CallReader {
public:
  struct Out {
    std::string text;
    std::vector<ToolCall> calls;
  };

  /// `several`: false: only the first call counts.
  CallReader(const CallFormat& format, std::vector<Function> functions, bool several)
      : format_(format), functions_(std::move(functions)), several_(several) {}

  /// What became certain with `piece`. Nothing is lost: what begins as a call and is none comes as text.
  Out push(std::string_view piece);
  /// At the end of the answer: what was held back.
  Out finish();
  uint64_t calls() const { return calls_; }

private:
  void read(bool whole, Out& out);
  size_t find_opener(size_t& certain) const;
  void say(std::string_view text, Out& out);

  const CallFormat& format_;
  const std::vector<Function> functions_;
  const bool several_;
  std::string held_;
  bool said_ = false; ///< some text
  uint64_t calls_ = 0;
};

} // namespace cortiq::serve
